"""Scenarios to test with: collections of them, each with a public and a private half."""
