"""What each agent takes while it waits for the API's first reply: processes, memory, start.

The agents of `make agents`, one after another, each in a fresh home, started as ramherd starts
them and with no setting for their heap. Anonymous memory is what one more agent costs; PSS has
its share of the files that several map. Medians of the rounds; with --write the table goes into a
document, between its two marks.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.tables import publish
from e2e.agent_home import AGENTS, INSTALLED, Home, make_home
from llm import LLM
from ramherd.agents.progress import Progress
from ramherd.core.units import MIB
from ramherd.system.procfs import parse_kib_fields, read_processes

SETTLE_S = 2.0
WAITING = {"waiting": [{"gate": "go", "say": "Done."}]}


def tree_of(first: int) -> list[int]:
    procs, tree = list(read_processes()), [first]
    for pid in tree:
        tree += [proc.id.pid for proc in procs if proc.ppid == pid]
    return tree


def memory_of(pids: list[int]) -> tuple[float, float]:
    """PSS and anonymous memory, in MiB."""
    fields = [
        parse_kib_fields(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\n")[2])
        for pid in pids
    ]
    sums = [sum(field[name] for field in fields) / MIB for name in ("Pss", "Anonymous")]
    return sums[0], sums[1]


def cpu_s_of(pids: list[int]) -> float:
    """User and system time so far: what the machine does beside is not in it."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in stats)
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(name: str) -> tuple[Home, tuple[float, ...]]:
    with tempfile.TemporaryDirectory() as place, LLM(WAITING) as llm:
        home = make_home(name, Path(place), llm.url)
        ask = home.ask("do it [script waiting]", home.agent.new_session())
        started = time.monotonic()
        launch = home.agent.start(home.program, replace(ask, heap_bytes=None))
        run = home.run(launch, Progress())
        llm.await_step("waiting", 0)
        start_s = time.monotonic() - started
        time.sleep(SETTLE_S)  # what the start took is given back
        pids = tree_of(run.process.pid)
        figures = (len(pids), *memory_of(pids), cpu_s_of(pids), start_s)
        llm.open("go")
        assert run.finish().result == "Done.", run.err
    return home, figures


def row_of(name: str, rounds: int) -> str:
    all_of_them = [measure(name) for _round in range(rounds)]
    home = all_of_them[0][0]
    middle = [
        statistics.median(values) for values in zip(*(f for _h, f in all_of_them), strict=True)
    ]
    procs, pss, anonymous, cpu_s, start_s = middle
    return (
        f"| {name} | {home.program.version} | {home.agent.runtime} | {procs:.0f} | {pss:.0f} |"
        f" {anonymous:.0f} | {cpu_s:.1f} | {start_s:.1f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path, nargs="*", help="documents with the marks")
    args = parser.parse_args()
    if not INSTALLED.is_dir():
        print("the agents are not installed: make agents", file=sys.stderr)
        return 3
    heads = ("agent", "version", "runtime", "processes", "PSS MiB", "anonymous MiB", "start CPU s")
    lines = [f"| {' | '.join([*heads, 'start s'])} |", "|---" * 8 + "|"]
    lines += [row_of(name, args.rounds) for name in AGENTS]
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    when = datetime.now(UTC).date()
    lines += ["", f"{when}, medians of {args.rounds}; {load}."]
    for document in args.write or [None]:
        publish(lines, "measured", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
