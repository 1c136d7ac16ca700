"""State that replicas share, in memory or in Redis: cache, events, locks, leases."""
