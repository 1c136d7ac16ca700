"""Trains and measures learned reward models."""
