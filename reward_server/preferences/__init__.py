"""Preferences between two conversations: what was compared, what people said, and data for preference training."""
