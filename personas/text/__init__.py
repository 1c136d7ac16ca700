"""Text as everything above reads it: normal forms, sentences, words, bounded memories of results."""
