"""Finished conversations: evaluate one or many, compare two, keep what came of it."""
