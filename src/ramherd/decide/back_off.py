"""How long something that failed waits before it is tried again."""


def back_off_s(times: int, first_s: float, most_s: float) -> float:
    """Twice as long each time: what is wrong for a moment is over by then."""
    return min(first_s * float(2 ** min(times - 1, 32)), most_s)
