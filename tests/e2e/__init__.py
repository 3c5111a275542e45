"""Real agent CLIs from npm against the language model of `tests/llm`."""
