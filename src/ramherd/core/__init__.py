"""The nouns: pure values that the layers pass to each other."""
