"""Scores files of conversations without a server."""
