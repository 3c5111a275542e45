"""How long to wait before something that failed is tried again."""


def back_off_s(times: int, first_s: float, most_s: float) -> float:
    """The delay doubles each time, so that a short problem is over by the next try."""
    return min(first_s * float(2 ** min(times - 1, 32)), most_s)
