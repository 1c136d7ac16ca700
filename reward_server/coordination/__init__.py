"""Limits and locks: what replicas would have to share."""
