"""Whose a process is, whether anybody can still want it, and what to say of all of them."""
