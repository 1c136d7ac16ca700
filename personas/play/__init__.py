"""What a persona does and says."""
