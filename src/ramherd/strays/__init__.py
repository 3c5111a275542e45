"""Processes that no run owns: found, judged with evidence, and ended."""
