"""Telemetry of a running server for its operator: structured logs and metrics."""
