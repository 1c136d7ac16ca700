"""Training and measuring learned reward models: the work behind `labs reward-model`."""
