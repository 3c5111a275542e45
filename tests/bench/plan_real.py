"""The number of agents at once that `ramherd plan` states, against real processes.

Fake agents that allocate real memory, of full size and twenty times as fast as real ones. Some are
run first, so that the store knows their class; then the plan is made for others, and these are run
with the same budget. The agents that run are counted twice a second, from the first seconds until
the last one has started.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.tables import publish
from ramherd.core.units import GIB, format_size
from ramherd.sim import agent
from ramherd.system.procfs import read_processes

PACE = 20
LEARNED = 24
SETTLED_S = 3.0
LOOK_S = 0.5
MOST_ERROR = 0.25


class Workload(NamedTuple):
    agents: int
    budget_bytes: int
    seed: int


WORKLOADS = (
    Workload(24, int(1.5 * GIB), 21), Workload(32, int(2.5 * GIB), 22),
    Workload(40, 4 * GIB, 23),
)  # fmt: skip


def write_jobs(path: Path, agents: int, seed: int) -> None:
    tables = (
        {
            "name": f"agent-{index}", "label": "bench",
            "command": [sys.executable, "-I", "-S", str(agent.__file__), "--synthetic", str(seed),
                        "--index", str(index), "--time", str(1 / PACE)],
        }
        for index in range(agents)
    )  # fmt: skip
    path.write_text("".join(json.dumps(table) + "\n" for table in tables))


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ramherd", *words]


def running(seed: int, parent: int) -> set[int]:
    """The agents of this herd: first processes of its runs."""
    mark = f"--synthetic\0{seed}\0".encode()
    found: set[int] = set()
    for proc in read_processes():
        try:
            line = Path(f"/proc/{proc.id.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark in line and proc.id.pid != parent:
            found.add(proc.id.pid)
    return found


def count_agents(words: list[str], seed: int, env: dict[str, str]) -> float:
    """The mean number while some wait."""
    started = time.monotonic()
    looks: list[tuple[float, set[int]]] = []
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            looks.append((time.monotonic() - started, running(seed, process.pid)))
            time.sleep(LOOK_S)
        assert process.returncode == 0, words
    known: set[int] = set()
    last_s = 0.0
    for at_s, pids in looks:
        if pids - known:
            known |= pids
            last_s = at_s
    return fmean(len(pids) for at_s, pids in looks if SETTLED_S <= at_s <= last_s)


def compare(work: Workload) -> tuple[float, float]:
    """Stated, and measured."""
    with tempfile.TemporaryDirectory() as place:
        env = {**os.environ, "XDG_STATE_HOME": f"{place}/state",
               "RAMHERD_RUNTIME_DIR": f"{place}/ramherd"}  # fmt: skip
        first, herd = Path(place, "first.jsonl"), Path(place, "herd.jsonl")
        write_jobs(first, LEARNED, work.seed + 1000)
        write_jobs(herd, work.agents, work.seed)
        budget = ("--budget", f"{work.budget_bytes}B")
        run = ("--own", "--json", "--quiet", "--max-cpu-pressure", "1", "--time-scale", str(PACE))
        words = command("run", str(first), *budget, *run)
        subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=True)
        told = subprocess.run(
            command("plan", str(herd), *budget, "--json"), env=env, capture_output=True, check=True
        )
        stated = float(json.loads(told.stdout)["at_once"])
        return stated, count_agents(command("run", str(herd), *budget, *run), work.seed, env)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the document with the marks")
    args = parser.parse_args()
    lines = ["| agents | budget | stated at once | measured | off by |", "|---" * 5 + "|"]
    worst = 0.0
    for work in WORKLOADS:
        stated, measured = compare(work)
        error = stated / measured - 1
        worst = max(worst, abs(error))
        lines.append(
            f"| {work.agents} | {format_size(work.budget_bytes)} | {stated:.1f} | {measured:.1f} |"
            f" {error * 100:+.0f} % |"
        )
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    publish([*lines, "", f"{datetime.now(UTC).date()}, {load}."], "plan-real", args.write)
    return int(worst > MOST_ERROR)


if __name__ == "__main__":
    sys.exit(main())
