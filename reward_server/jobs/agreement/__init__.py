"""Measures judges: against people, against each other, against themselves, and against attacks."""
