"""Who decides a criterion: exact state, rules, the text encoder."""
