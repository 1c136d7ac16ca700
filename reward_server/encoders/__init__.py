"""Text encoders: from weights to vectors."""
