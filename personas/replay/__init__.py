"""A transcript, stepped through as the persona would have heard it."""
