"""Changes the machine: pens, the keeper, starting and ending processes.

This file has no imports, because the keeper loads it.
"""
