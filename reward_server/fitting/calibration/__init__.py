"""Fits calibrations of scores."""
