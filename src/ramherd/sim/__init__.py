"""Fake agents that really allocate, and the memory profiles they follow."""
