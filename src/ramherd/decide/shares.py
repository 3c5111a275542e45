"""The arithmetic of the budget, on plain numbers: hooks count with it too, and core/model.py takes
longer to load than a hook may take.
"""


def budget_of(size_bytes: int, used_bytes: int, ours_bytes: int, share: float) -> int:
    """Of RAM or of a limit: the share of it, less what others use."""
    return int(share * size_bytes) - max(used_bytes - ours_bytes, 0)
