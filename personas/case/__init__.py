"""What a persona knows and how it is made: the schema of a case, its compiled form, temperaments, the linter."""
