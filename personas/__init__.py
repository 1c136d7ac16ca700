"""The party that the agent talks to: cases, temperaments, and the deterministic simulator."""
