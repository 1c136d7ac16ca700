"""Acts and speaks for a persona."""
