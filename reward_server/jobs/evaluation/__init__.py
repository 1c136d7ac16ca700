"""Offline evaluation: score a file of conversations through the same scorer as the API."""
