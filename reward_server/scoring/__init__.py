"""Transcript in, reward out: the one path every door ends in."""
