"""What surrounds a call of a language model: deadline, retries, breaker, concurrency, budget, single flight."""
