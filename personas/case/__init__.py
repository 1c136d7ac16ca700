"""A persona's knowledge and its making: the schema of a case, its compiled form, temperaments, the linter."""
