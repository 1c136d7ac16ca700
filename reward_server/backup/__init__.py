"""Backs up everything a server keeps, and brings it back."""
