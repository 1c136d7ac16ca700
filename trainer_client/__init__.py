"""What an outside lab installs: the wire types, the clients, the rollout helper."""
