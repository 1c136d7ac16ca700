"""The learner: multi-turn policy gradients over the server's rewards."""
