"""Many applications at a time, some of which die without a word."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
BUDGET = 1 << 34
PROCESSES = 20
# A minute for the record (`RAMHERD_LEDGER_S=60`); a quarter of one in each test run.
SECONDS = float(os.environ.get("RAMHERD_LEDGER_S", "12"))


def start(runtime: Path, seed: int, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, str(WORKER), str(runtime), str(seed), str(BUDGET), str(seconds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def total_leased(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=5)) as db:
        (total,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM leases").fetchone()
        return int(total)


def test_twenty_applications_never_hold_more_than_the_budget(tmp_path: Path) -> None:
    """Looked at while they take, give and die; and a lease is quick all the while."""
    workers = [start(tmp_path, seed, SECONDS) for seed in range(PROCESSES)]
    rng, until_s, looks, worst = random.Random(1), time.monotonic() + SECONDS - 1, 0, 0
    doomed = workers[:5]
    time.sleep(1)
    while time.monotonic() < until_s:
        worst = max(worst, total_leased(tmp_path / "ledger.db"))
        looks += 1
        if doomed and rng.random() < 0.05:
            dead = doomed.pop()
            dead.kill()
            dead.communicate()
        time.sleep(0.02)
    times = [took for worker in workers[5:] for took in json.loads(worker.communicate()[0])]
    for worker in doomed:
        worker.communicate()

    p99 = sorted(times)[int(0.99 * len(times))]
    print(f"{len(times)} leases, p99 {1000 * p99:.1f} ms, most {worst / BUDGET:.3f}, {looks} looks")
    assert looks > 50
    assert 0 < worst <= BUDGET
    assert p99 < 0.010
