"""Structured logs and what is taken out of them."""
