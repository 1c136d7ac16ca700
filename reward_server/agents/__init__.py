"""Agents under training or test: who they are, what they are told and say, and how they stand beside each other."""
