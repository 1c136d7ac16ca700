"""What a turn means in a state of the conversation."""
