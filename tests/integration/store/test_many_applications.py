"""Many applications at a time, some of which die without a word."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
BUDGET = 1 << 34
PROCESSES = 20
# A minute in CI; a fifth of one by hand.
SECONDS = float(os.environ.get("RAMHERD_TEST_LEDGER_S", "60" if os.environ.get("CI") else "12"))


@contextmanager
def started(runtime: Path, until_s: float) -> Iterator[list[subprocess.Popen[str]]]:
    """All of them at work; none of them left afterwards."""
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(runtime), str(seed), str(BUDGET), str(until_s)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    try:
        assert all(worker.stdout and worker.stdout.readline() == "ready\n" for worker in workers)
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()


def total_leased(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=5)) as db:
        (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM leases").fetchone()
        return int(total)


def look_on(path: Path, doomed: list[subprocess.Popen[str]], until_s: float) -> list[int]:
    """What was leased at each look; on the way some of the applications are killed."""
    rng, sums = random.Random(1), list[int]()
    while time.monotonic() < until_s:
        sums.append(total_leased(path))
        if doomed and rng.random() < 0.05:
            doomed.pop().kill()
        time.sleep(0.02)
    return sums


def test_twenty_applications_never_hold_more_than_the_budget(tmp_path: Path) -> None:
    """Looked at while they take, give and die."""
    until_s = time.monotonic() + SECONDS
    with started(tmp_path, until_s) as workers:
        sums = look_on(tmp_path / "ledger.db", workers[:5], until_s - 1)
        times = [took for worker in workers[5:] for took in json.loads(worker.communicate()[0])]

    print(f"{len(times)} leases, most {max(sums) / BUDGET:.3f} leased")
    assert len(sums) > 50
    assert 0 < max(sums) <= BUDGET
    assert len(times) > 500
