"""ULIDs: 26 letters that sort by time. Names of herds, jobs, runs and owners."""

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_last = 0


def new_id() -> str:
    """A new ULID; within this process each sorts after the previous one."""
    global _last  # noqa: PLW0603 - order within one millisecond needs the last value
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    if number <= _last:
        number = _last + 1
    _last = number
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
