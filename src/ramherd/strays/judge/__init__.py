"""Finds the owner of each process, whether it is still needed, and the warnings to show."""
