"""Fits a calibration on a file of rewards with labels or winners, or on the server's own evaluations."""
