"""The labs command."""
