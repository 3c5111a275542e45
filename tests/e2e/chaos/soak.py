"""A soak: herds with failures, leftovers, cancels and deaths for as long as is asked for, and what
the service holds of memory and files meanwhile.

    python -m e2e.chaos.soak --seconds 3600
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from integration.conftest import make_ramherd, ours, pens
from integration.service.conftest import Service, finish, rss
from integration.service.talker import Talker

# A third of the time to get warm; what comes after may not be more than this above it.
SLACK_BYTES = 3 << 20
SLACK_FDS = 8
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


def agents() -> list[int]:
    return ours("RAMHERD_RUN")


def run_soak(here: Path, seconds: float, seed: int, pen: str) -> dict[str, object]:
    chance = random.Random(seed)
    service = Service(make_ramherd(here, pen))
    service.start()
    talker = Talker(here)
    talker.go()
    asks = {"agent": "claude", "prompt": "do it", "agent_program": str(talker.program)}
    samples, herds, deaths = Samples(), 0, 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        herd = service.submit(*JOBS, {"name": "asks", **asks})
        herds += 1
        service.await_in(herd, "never", "running")
        if chance.random() < 0.1:
            deaths += 1
            for pid in service.keepers():
                os.kill(pid, signal.SIGKILL)
        service.client.cancel(service.id_of(herd, "never"))
        found = service.client.wait(herd)
        assert found["counts"] == {"done": 6, "failed": 1, "cancelled": 1}, service.said
        samples.take()
    finish(service)
    return {"herds": herds, "keepers_killed": deaths, **samples.check()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as here:
        print(run_soak(Path(here), options.seconds, options.seed, pens()[0]))


if __name__ == "__main__":
    main()
