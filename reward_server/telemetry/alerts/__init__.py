"""Alerts: rules over the metrics of this server, and where they are told."""
