"""The clock that all processes share until the next boot. Nobody can set it, and it counts the
time that the machine sleeps. A time on it means something together with the boot id.
"""

import time

# macOS has no such clock; its monotonic one counts sleep.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_boot_s() -> float:
    """Seconds since boot, as the start of a process is counted."""
    return time.clock_gettime(CLOCK)
