"""Reads the processes that may be strays."""
