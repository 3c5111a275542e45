"""The clock: whether it is right, and whether it ever went back."""

import time
from pathlib import Path

from ramherd.doctor.facts import Clock
from ramherd.doctor.read.host import Host
from ramherd.system.clock import is_clock_synchronised


def read_clock(host: Host, state: Path, now_s: float | None = None) -> Clock:
    return Clock(
        now_s=time.time() if now_s is None else now_s,
        is_synchronised=read_synchronised(host),
        source=host.text("sys/devices/system/clocksource/clocksource0/current_clocksource").strip(),
        newest_s=read_newest(state),
    )


def read_synchronised(host: Host) -> bool | None:
    """From the kernel; the file of systemd-timesyncd, if it exists, has the same value."""
    if (host.root / "run/systemd/timesync/synchronized").exists():
        return True
    if host.root != Path("/"):
        return None
    return is_clock_synchronised()


def read_newest(state: Path) -> float | None:
    """The last time we wrote: the store and its journal."""
    times = []
    for name in ("ramherd.db", "ramherd.db-wal"):
        try:
            times.append((state / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)
