"""The reward service: HTTP in, rewards out."""
