"""The text encoder and, built on it, learned models."""
