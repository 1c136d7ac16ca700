"""Tells labs of events: signed messages to their own URLs, by the Standard Webhooks scheme."""
