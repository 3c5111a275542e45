"""Judges the facts: each function takes facts and returns findings."""
