"""What warm reuse saves: the same small jobs of claude, one after another, without it and with it.

Each job asks twice and runs one command, against a model that answers at once: what is left is
what the agent itself takes. Rounds alternate, so both see the same machine; the figures are
medians of the rounds. With --write the table goes into a document, between its two marks.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.tables import publish
from e2e.agent_home import INSTALLED, make_home
from llm import LLM
from ramherd.core.units import MIB

PROMPT = "do it [script shell]"


class Taken(NamedTuple):
    """By all jobs together, and by the middle one."""

    wall_s: float
    cpu_s: float
    job_s: float
    peak_mib: float


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(jobs: int, reuse: int) -> Taken:
    with tempfile.TemporaryDirectory() as place, LLM() as llm:
        folder = Path(place)
        home = make_home("claude", folder, llm.url)
        env = {**home.env, "XDG_STATE_HOME": str(folder / "state")}
        env |= {"RAMHERD_RUNTIME_DIR": str(folder / "ramherd"), "RAMHERD_MAX_CPU_PRESSURE": "none"}
        flags = ("--agent", "claude", "--skip-permissions", "--max-parallel", "1")
        before = cpu_s()
        done = subprocess.run(
            [sys.executable, "-m", "ramherd", "run", "--json", *flags, "--reuse", str(reuse)]
            + [PROMPT] * jobs,
            env=env, cwd=home.cwd, capture_output=True, check=False,
        )  # fmt: skip
        taken_s = cpu_s() - before
    summary = json.loads(done.stdout)
    assert summary["done"] == jobs, done.stderr
    middle = statistics.median(result["wall_s"] for result in summary["results"])
    return Taken(summary["wall_s"], taken_s, middle, summary["peak_bytes"] / MIB)


def medians(rounds: list[Taken]) -> Taken:
    return Taken(*(statistics.median(values) for values in zip(*rounds, strict=True)))


def row_of(name: str, taken: Taken, jobs: int) -> str:
    figures = f"{taken.wall_s:.1f} | {taken.job_s:.2f} | {taken.cpu_s / jobs:.2f}"
    return f"| {name} | {figures} | {taken.peak_mib:.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the document with the marks")
    args = parser.parse_args()
    if not INSTALLED.is_dir():
        print("the agents are not installed: make agents", file=sys.stderr)
        return 3
    pairs = [(measure(args.jobs, 0), measure(args.jobs, args.jobs)) for _ in range(args.rounds)]
    cold, warm = (medians(list(rounds)) for rounds in zip(*pairs, strict=True))
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    lines = [
        f"| {args.jobs} jobs of claude in turn | all s | a job s | CPU s a job | peak MiB |",
        "|---|---|---|---|---|",
        row_of("a process each", cold, args.jobs),
        row_of(f"`reuse = {args.jobs}`", warm, args.jobs),
        "",
        f"{cold.wall_s / warm.wall_s:.1f} times as fast with {warm.cpu_s / cold.cpu_s:.0%} of the"
        f" CPU time (`make measure-agents`; medians of {args.rounds}; {load}).",
    ]
    publish(lines, "warm", args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
