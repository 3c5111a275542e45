"""Real processes, all of which end with their test."""

from integration.conftest import nothing_left

__all__ = ["nothing_left"]
