"""The clock that all processes share until the next boot. It cannot be set, and it counts the time
that the machine sleeps. Its times are only valid together with the boot id.
"""

import time

# macOS has no such clock; its monotonic clock counts sleep.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_boot_s() -> float:
    """Seconds since boot, on the clock of process start times."""
    return time.clock_gettime(CLOCK)
