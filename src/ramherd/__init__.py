"""ramherd runs as many coding agents as the memory holds, and never one more.

Kept free of imports: the keeper and the hook load this file, and their memory counts.
"""

__version__ = "0.1.0"
