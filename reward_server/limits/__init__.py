"""How much of what a lab may use: rates, budgets, concurrency, storage."""
