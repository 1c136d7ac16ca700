"""Fits maps of a decision model's probabilities on labelled turns and verdicts (`labs calibrate --decisions`)."""
