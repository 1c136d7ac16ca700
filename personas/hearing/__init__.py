"""Understands a turn in a state of the conversation."""
