"""What a supervisor costs with 50, 200 and 500 small runs: processor time and memory.

`make bench`. Its own time alone is counted, from /proc, over some seconds in which nothing starts
or ends: the cost of a tick may grow with the number of runs, but no faster.

    cd tests && ../.venv/bin/python -m bench.crowd [--write DOCUMENT] [RUNS ...]
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.tables import publish
from ramherd.system.proc_stat import STIME, UTIME, read_children, read_stat, split_stat

SIZES = (50, 200, 500)
WINDOW_S = 10.0
START_S = 60.0
TICK_S = 0.5
HERTZ = os.sysconf("SC_CLK_TCK")
# With 500 runs.
ALLOWED_MB, ALLOWED_SHARE = 40.0, 0.10
# What a tick costs for each run with the most runs, beside what it costs with the fewest.
ALLOWED_GROWTH = 1.2


class Cost(NamedTuple):
    runs: int
    cpu_share: float
    rss_mb: float

    @property
    def tick_ms(self) -> float:
        return self.cpu_share * TICK_S * 1000


def measure(runs: int, state: Path) -> Cost:
    """Of a herd in which all runs sleep."""
    env = {
        **os.environ, "XDG_STATE_HOME": str(state), "RAMHERD_RUNTIME_DIR": str(state / "run"),
        "RAMHERD_MAX_CPU_PRESSURE": "none",
    }  # fmt: skip
    command = [sys.executable, "-m", "ramherd", "run", "--quiet", "--memory", "4MiB", "--", "sleep"]
    herd = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=env, text=True,
    )  # fmt: skip
    assert herd.stdin is not None
    herd.stdin.write("1000\n" * runs)
    herd.stdin.close()
    try:
        await_runs(herd.pid, runs)
        begin_s, before_s = time.monotonic(), read_cpu_s(herd.pid)
        time.sleep(WINDOW_S)
        share = (read_cpu_s(herd.pid) - before_s) / (time.monotonic() - begin_s)
        return Cost(runs, share, read_rss_mb(herd.pid))
    finally:
        herd.send_signal(signal.SIGINT)
        herd.wait(START_S)


def await_runs(pid: int, runs: int) -> None:
    """Until the keeper, which is the only child, has so many; and then for a moment."""
    deadline = time.monotonic() + START_S
    while sum(len(read_children(keeper) or ()) for keeper in read_children(pid) or ()) < runs:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{runs} runs were not started within {START_S:.0f} s")
        time.sleep(0.2)
    time.sleep(2.0)


def read_cpu_s(pid: int) -> float:
    found = read_stat(pid)
    assert found is not None, "the herd has ended"
    fields = split_stat(found[0])[1]
    return (int(fields[UTIME]) + int(fields[STIME])) / HERTZ


def read_rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def rows(costs: list[Cost]) -> list[str]:
    day = datetime.now(UTC).date()
    return [
        f"| runs that sleep ({day}) | a tick, ms | for each run, µs | share of a core | peak MB |",
        "|---|---|---|---|---|",
        *(
            f"| {cost.runs} | {cost.tick_ms:.1f} | {1000 * cost.tick_ms / cost.runs:.0f} "
            f"| {cost.cpu_share:.1%} | {cost.rss_mb:.1f} |"
            for cost in costs
        ),
    ]


def is_kept(costs: list[Cost]) -> bool:
    first, last = costs[0], costs[-1]
    growth = (last.tick_ms / last.runs) / max(first.tick_ms / first.runs, 1e-9)
    return (
        last.rss_mb <= ALLOWED_MB and last.cpu_share <= ALLOWED_SHARE and growth <= ALLOWED_GROWTH
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", nargs="*", type=int, default=SIZES)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crowd-") as state:
        costs = [measure(runs, Path(state)) for runs in args.runs]
    publish(rows(costs), "crowd", args.write)
    verdict = "kept" if is_kept(costs) else "EXCEEDED"
    print(
        f"allowed with the most runs: {ALLOWED_MB:.0f} MB, {ALLOWED_SHARE:.0%} of a core, and "
        f"{ALLOWED_GROWTH} times as much for each run as with the fewest: {verdict}"
    )
    return 0 if is_kept(costs) else 1


if __name__ == "__main__":
    sys.exit(main())
