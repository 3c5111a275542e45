"""The kernel's clock."""

import ctypes

TIME_ERROR = 5
# struct timex has 208 bytes on 64-bit Linux; with `modes` (its first field) 0, the call only reads.
TIMEX_BYTES = 512


def is_clock_synchronised() -> bool | None:
    """The result of adjtimex(2); None if the system has no such call."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    answer = adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)) if adjtimex else -1
    return None if answer < 0 else answer != TIME_ERROR
