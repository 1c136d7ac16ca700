"""Structured logs and metrics; neither carries private text."""
