"""A language model that words what personas say."""
