"""The clock: whether it is right, and whether it ever went back."""

import ctypes
import time
from pathlib import Path

from ramherd.doctor.facts import Clock
from ramherd.doctor.read.host import Host

TIME_ERROR = 5
# struct timex has 208 bytes on 64-bit Linux; `modes` (its first field) 0 only asks.
TIMEX_BYTES = 512


def read_clock(host: Host, state: Path, now_s: float | None = None) -> Clock:
    return Clock(
        now_s=time.time() if now_s is None else now_s,
        is_synchronised=read_synchronised(host),
        source=host.text("sys/devices/system/clocksource/clocksource0/current_clocksource").strip(),
        newest_s=read_newest(state),
    )


def read_synchronised(host: Host) -> bool | None:
    """The kernel's own word; the file of systemd-timesyncd says the same where it is."""
    if (host.root / "run/systemd/timesync/synchronized").exists():
        return True
    if host.root != Path("/"):
        return None
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    answer = adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)) if adjtimex else -1
    return None if answer < 0 else answer != TIME_ERROR


def read_newest(state: Path) -> float | None:
    """When we last wrote: the store and its journal."""
    times = []
    for name in ("ramherd.db", "ramherd.db-wal"):
        try:
            times.append((state / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)
