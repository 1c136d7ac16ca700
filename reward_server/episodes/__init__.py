"""Episodes: history alignment, the state machine, and the service that steps and saves them."""
