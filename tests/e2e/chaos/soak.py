"""A soak: herds with failures, leftovers, cancels and deaths for as long as is asked for, and what
the service holds meanwhile: memory, descriptors, the write-ahead log, logs and events.

    python -m e2e.chaos.soak --seconds 3600
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from integration.conftest import make_ramherd, ours, pens
from integration.service.conftest import Service, finish, rss
from integration.service.talker import Talker
from ramherd.store.events import KEEP_EVENTS

# A third of the time to get warm; what comes after may not be more than this above it.
SLACK_BYTES = 3 << 20
SLACK_FDS = 2
# A checkpoint begins at 16 MB; a reader may hold it up for some writes.
MOST_WAL_BYTES = 24 << 20
# Logs are removed above this, the oldest first; what one herd prints may come on top.
LOG_TOTAL_BYTES = 64 << 20
SLACK_LOG_BYTES = 4 << 20
# Events of one herd: its jobs end in the same way each time, but for a keeper that is killed.
SLACK_EVENTS = 0.25
HOLD = "x = b'x' * (8 << 20); import time; time.sleep(0.2)"
JOBS: list[dict[str, object]] = [
    {"name": "short", "command": "true"},
    {"name": "holds", "command": [sys.executable, "-S", "-E", "-c", HOLD]},
    {"name": "fails", "command": "exit 3", "retries": 1},
    {"name": "leaves", "command": "setsid sleep 300 & echo left"},
    {"name": "prints", "command": "head -c 1000000 /dev/zero"},
    {"name": "after", "command": "true", "after": ["short"]},
    {"name": "never", "command": "sleep 300"},
]


@dataclass
class Samples:
    """The service's own, then its API's, then its keeper's: bytes and open files."""

    seen: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def take(self) -> None:
        for name, mark in (
            ("up", b"up"),
            ("api", b"api/__main__.py"),
            ("keeper", b"keeper/__main__.py"),
        ):
            for pid in ours():
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if any(word.endswith(mark) for word in words) and pid not in agents():
                    files = len(os.listdir(f"/proc/{pid}/fd"))
                    self.seen.setdefault(name, []).append((rss(pid), files))
                    break

    def check(self) -> dict[str, tuple[int, int, int, int]]:
        """Warm and last: (bytes, bytes, files, files)."""
        found = {}
        for name, seen in self.seen.items():
            third = len(seen) // 3
            warm_bytes = max(size for size, _files in seen[: third * 2])
            warm_files = max(files for _size, files in seen[: third * 2])
            last_bytes = min(size for size, _files in seen[-third:])
            last_files = min(files for _size, files in seen[-third:])
            found[name] = (warm_bytes, last_bytes, warm_files, last_files)
            assert last_bytes <= warm_bytes + SLACK_BYTES, found
            assert last_files <= warm_files + SLACK_FDS, found
        return found


@dataclass
class StoreSamples:
    """After each herd: bytes of the write-ahead log and of all logs, events so far."""

    service: Service
    seen: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self) -> None:
        state = self.service.ramherd.state / "ramherd"
        ((events,),) = self.service.rows("SELECT coalesce(max(seq), 0) FROM events")
        wal_bytes = size_of(state / "ramherd.db-wal")
        # Unlike `glob`, `walk` passes over a directory that is removed meanwhile.
        logs = [
            Path(folder, name) for folder, _, names in os.walk(state / "runs") for name in names
        ]
        self.seen.append((wal_bytes, sum(map(size_of, logs)), events))

    def check(self) -> dict[str, tuple[int, int, float, float]]:
        """The most bytes of both, and the events of a herd in the first part and in the last."""
        third = len(self.seen) // 3
        wal_bytes, log_bytes, events = (list(column) for column in zip(*self.seen, strict=True))
        warm = (events[2 * third] - events[0]) / (2 * third)
        last = (events[-1] - events[-1 - third]) / third
        found = {"store": (max(wal_bytes), max(log_bytes), round(warm, 1), round(last, 1))}
        assert max(wal_bytes) <= MOST_WAL_BYTES, found
        assert log_bytes[-1] <= LOG_TOTAL_BYTES + SLACK_LOG_BYTES, found
        assert last <= warm * (1 + SLACK_EVENTS), found
        ((kept,),) = self.service.rows("SELECT count(*) FROM events")
        assert kept <= KEEP_EVENTS * 1.5, kept
        return found


def size_of(path: Path) -> int:
    """What it takes of the disk; it may be gone by now."""
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0


def agents() -> list[int]:
    return ours("RAMHERD_RUN")


def run_soak(here: Path, seconds: float, seed: int, pen: str) -> dict[str, object]:
    chance = random.Random(seed)
    service = Service(make_ramherd(here, pen), ("--log-total", f"{LOG_TOTAL_BYTES >> 20}MiB"))
    service.start()
    talker = Talker(here)
    talker.go()
    asks = {"agent": "claude", "prompt": "do it", "agent_program": str(talker.program)}
    samples, stored, herds, deaths = Samples(), StoreSamples(service), 0, 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        herd = service.submit(*JOBS, {"name": "asks", **asks})
        herds += 1
        service.await_in(herd, "never", "running")
        if chance.random() < 0.1:
            deaths += 1
            for pid in service.keepers():
                with suppress(ProcessLookupError):  # one that ends by itself
                    os.kill(pid, signal.SIGKILL)
        service.client.cancel(service.id_of(herd, "never"))
        found = service.client.wait(herd)
        assert found["counts"] == {"done": 6, "failed": 1, "cancelled": 1}, service.said
        samples.take()
        stored.take()
    finish(service)
    return {"herds": herds, "keepers_killed": deaths, **samples.check(), **stored.check()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as here:
        print(run_soak(Path(here), options.seconds, options.seed, pens()[0]))


if __name__ == "__main__":
    main()
