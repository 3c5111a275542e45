"""What a supervisor costs with 50 to 500 small runs: processor time and memory.

`make bench`. Its own time alone is counted, from /proc, over some seconds in which nothing starts
or ends: the cost of a tick may grow with the number of runs, but no faster. With `--write` the
table is put into the document, and the picture beside it.

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

from bench.replay.picture import text
from bench.tables import publish
from ramherd.system.proc_stat import STIME, UTIME, read_children, read_stat, split_stat

SIZES = (50, 100, 200, 350, 500)
WINDOW_S = 10.0
START_S = 60.0
TICK_S = 0.5
HERTZ = os.sysconf("SC_CLK_TCK")
# With 500 runs.
ALLOWED_MB, ALLOWED_SHARE = 40.0, 0.10
# What a tick costs for each run with the most runs, beside what it costs with the fewest.
ALLOWED_GROWTH = 1.2
PICTURE = "crowd.svg"
WIDTH, HEIGHT, LEFT, TOP = 560, 240, 60, 30
MEASURED, LINEAR = "#4e79a7", "#999999"


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


def render_picture(costs: list[Cost]) -> str:
    """A tick with each number of runs; the dashed line grows as the number does."""
    first, most = costs[0], costs[-1].runs
    line_ms = first.tick_ms * most / first.runs
    top_ms = max(line_ms, *(cost.tick_ms for cost in costs))

    def at(runs: float, tick_ms: float) -> str:
        return f"{LEFT + runs / most * WIDTH:.0f} {TOP + HEIGHT * (1 - tick_ms / top_ms):.0f}"

    bottom = TOP + HEIGHT
    path = "L".join(at(cost.runs, cost.tick_ms) for cost in costs)
    size = f'width="{LEFT + WIDTH + 40}" height="{bottom + 40}"'
    title = "one tick of the supervisor, ms (dashed: as the number of runs)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path stroke="#222222" fill="none" d="M{LEFT} {TOP}V{bottom}h{WIDTH}"/>',
        f'<path stroke="{LINEAR}" stroke-dasharray="4 3" d="M{at(0, 0)}L{at(most, line_ms)}"/>',
        f'<path stroke="{MEASURED}" stroke-width="2" fill="none" d="M{path}"/>',
        text(LEFT, TOP - 12, title, "start"),
        text(LEFT + WIDTH, bottom + 34, "runs", "end"),
    ]
    for cost in costs:
        x, y = at(cost.runs, cost.tick_ms).split()
        parts += [
            f'<circle cx="{x}" cy="{y}" r="3" fill="{MEASURED}"/>',
            text(int(x), int(y) - 8, f"{cost.tick_ms:.1f}", "end"),
            text(int(x), bottom + 16, str(cost.runs), "middle"),
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


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
    if args.write is not None:
        args.write.with_name(PICTURE).write_text(render_picture(costs))
    verdict = "kept" if is_kept(costs) else "EXCEEDED"
    print(
        f"allowed with the most runs: {ALLOWED_MB:.0f} MB, {ALLOWED_SHARE:.0%} of a core, and "
        f"{ALLOWED_GROWTH} times as much for each run as with the fewest: {verdict}"
    )
    return 0 if is_kept(costs) else 1


if __name__ == "__main__":
    sys.exit(main())
