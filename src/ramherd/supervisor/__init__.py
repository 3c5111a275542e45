"""The loop of a herd, and the parts that it calls."""
