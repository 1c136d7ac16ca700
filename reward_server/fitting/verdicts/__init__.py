"""Measures the judge of `judge` criteria on conversations whose criteria people decided."""
