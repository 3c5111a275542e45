"""Changing the machine: pens, the keeper, starting and ending processes.

Kept free of imports: the keeper loads this file.
"""
