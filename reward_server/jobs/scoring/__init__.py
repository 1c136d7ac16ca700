"""Large files of conversations, scored by one process or by many workers."""
