"""Limits on what a lab may use: rates, budgets, concurrency, storage."""
