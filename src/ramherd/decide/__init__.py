"""Decisions: values in, actions out. Nothing here reads a clock, a file or a process."""
