"""A sequence classifier as a judge of whole conversations: a reward model of 0.6 to 8 billion weights, say."""
