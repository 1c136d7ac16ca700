"""What the operator sees of a running server: structured logs and metrics."""
