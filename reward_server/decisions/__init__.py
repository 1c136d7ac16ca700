"""One layer for decisions: a state and typed questions in; a probability per option out, or a failure with a kind."""
