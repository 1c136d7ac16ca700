"""Trains and measures the local reader."""
