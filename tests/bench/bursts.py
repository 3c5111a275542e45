"""Burst herds with real processes: ramherd with memory alone, and the best `--max-parallel`.

`make bench` (root, cgroup v1). Agents talk to a scripted model on loopback and run its commands:
tools that take 1-1.5 GiB for 3 s. The herds are those of the simulator (`sim/hard_herds.py`): 20
agents of which 7 burst, and 8 that all burst, in 3 GiB, without history. A search tries fixed
numbers on the first herd; then ramherd and the best number take turns on other herds.

    cd tests && ../.venv/bin/python -m bench.bursts [--agent claude] [--herd 20/7] [--write DOC]
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.replay.arena import Arena, make_arena
from bench.replay.contest import TOOL_BYTES, count_left
from bench.replay.herd import SLACK_BYTES
from bench.replay.meminfo import Meminfo
from bench.replay.sampler import Sampler
from bench.replay.table import render_table
from bench.replay.tools import enter
from bench.tables import publish
from e2e.agent_home import make_home
from llm import LLM
from ramherd.core.units import MIB
from ramherd.sim import claude_events
from ramherd.sim.course import Course
from ramherd.sim.hard_herds import BASE_BYTES, BURST_S, GIB, SHORT_S, burst_herd

BUDGET_BYTES = 3 * GIB
MOST_S = 400.0
ROUNDS = 3
# Agents, those that burst, and the numbers that the search tries.
HERDS = {"20/7": (20, 7, (3, 5, 7, 9, 12)), "8/8": (8, 8, (2, 3, 4, 5, 6))}
# The bars: times of the best number's wall time and requests, stops of one job, bytes over the
# budget, the share of the work that is redone.
WALL, REQUESTS, STOPS, OVER_BYTES, REDONE = 1.10, 1.15, 2, 64 * MIB, 0.03
TOOL = "import time; held = bytearray({size}); time.sleep({seconds})"
PROGRAM = """\
#!/bin/sh
exec {python} -S -I {file} "$@"
"""
# Both kinds of agents write the same place of the document: the last one measured.
MARK = "bursts"
HEAD = (
    "herd", "tool", "done", "wall s", "stops", "most of one job", "model requests",
    "peak over the budget, MiB", "work redone", "OOM kills",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    wall_s: float
    done: int
    stops: int
    most_stops: int
    requests: int
    peak_bytes: int
    redone_share: float
    oom_kills: int
    left: int

    @property
    def over_bytes(self) -> int:
        return max(self.peak_bytes - BUDGET_BYTES, 0)


@dataclass(frozen=True, slots=True)
class BurstHerd:
    """The agents of one herd, each as the script of its model."""

    name: str
    courses: Sequence[Course]

    def scripts(self) -> dict[str, list[dict[str, Any]]]:
        return {f"agent-{n}": make_script(course) for n, course in enumerate(self.courses, 1)}

    @property
    def work_s(self) -> int:
        return sum(course.seconds for course in self.courses)


def make_script(course: Course) -> list[dict[str, Any]]:
    """The model thinks in calm seconds; each burst is one command."""
    steps: list[dict[str, Any]] = []
    wait_s = 0
    for size, group in itertools.groupby(course.bytes):
        seconds = len(list(group))
        if size == BASE_BYTES:
            wait_s = seconds
            continue
        # Two bursts of the same size in a row would be one group.
        for _ in range(seconds // BURST_S):
            steps.append({"wait_s": wait_s, "shell": burst_command(size - BASE_BYTES)})
            wait_s = 0
    return [*(steps or [{"wait_s": 1, "shell": "true"}]), {"wait_s": wait_s, "say": "Done."}]


def burst_command(size: int) -> str:
    return f"{sys.executable} -S -I -c '{TOOL.format(size=size, seconds=BURST_S)}'"


@contextmanager
def agents(name: str, place: Path, url: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """The environment of the herd, and the options that choose its program."""
    if name == "claude":
        home = make_home("claude", place, url)
        yield {key: value for key, value in home.env.items() if key != "TMPDIR"}, []
        return
    program, sessions = place / "claude", place / "sessions"
    program.write_text(PROGRAM.format(python=sys.executable, file=claude_events.__file__))
    program.chmod(0o755)
    sessions.mkdir()
    env = {
        "PATH": os.environ["PATH"], "HOME": str(place), "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none", "FAKE_CLAUDE_BYTES": str(BASE_BYTES),
        "FAKE_CLAUDE_SESSIONS": str(sessions),
    }  # fmt: skip
    yield env, ["--agent-program", str(program)]


def run_herd(herd: BurstHerd, agent: str, number: int | None) -> Result:
    """One herd in a new memory cgroup, with no history of earlier ones."""
    with (
        tempfile.TemporaryDirectory(prefix="bursts-") as name,
        LLM(herd.scripts()) as llm,
        agents(agent, Path(name), llm.url) as (env, options),
        arena() as here,
    ):
        place = Path(name)
        own = {"XDG_STATE_HOME": place / "state", "XDG_CONFIG_HOME": place / "config",
               "RAMHERD_RUNTIME_DIR": place / "runtime"}  # fmt: skip
        env |= {key: str(path) for key, path in own.items()}
        cap = [] if number is None else ["--max-parallel", str(number)]
        command = make_command([*options, *cap])
        summary, sampler, left = run_in(here, command, env, place, herd)
        requests = sum(talk.kind == "main" for talk in llm.talks)
        return read_result(summary, sampler, requests, left, herd)


def read_result(
    summary: Mapping[str, Any], sampler: Sampler, requests: int, left: int, herd: BurstHerd
) -> Result:
    return Result(
        wall_s=summary["wall_s"], done=summary["done"], stops=summary["preempted"],
        most_stops=max(result["runs"] - 1 for result in summary["results"]), requests=requests,
        peak_bytes=max(summary["peak_bytes"], 0), redone_share=summary["redone_s"] / herd.work_s,
        oom_kills=max(sampler.oom_kills, summary["oom_kills"]), left=left,
    )  # fmt: skip


def make_command(options: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "ramherd", "run", "-", "--json", "--agent", "claude"]
    command += ["--budget", f"{BUDGET_BYTES}B", "--budget-share", "1", "--skip-permissions"]
    return [*command, "--max-cpu-pressure", "none", *options]


@contextmanager
def arena() -> Iterator[Arena]:
    made = make_arena(BUDGET_BYTES + SLACK_BYTES + TOOL_BYTES)
    try:
        yield made
    finally:
        made.remove()


def run_in(
    here: Arena, command: Sequence[str], env: Mapping[str, str], place: Path, herd: BurstHerd
) -> tuple[dict[str, Any], Sampler, int]:
    """What `run --json` printed, what was seen of its cgroup, and how many processes it left."""
    work = place / "work"
    work.mkdir()
    jobs = [{"name": name, "prompt": f"do it [script {name}]", "cwd": str(work)}
            for name in herd.scripts()]  # fmt: skip
    meminfo = Meminfo(place / "meminfo", here.limit_bytes)
    with (place / "err").open("w") as err:
        process = subprocess.Popen(
            enter(command, here.path, None), env=dict(env), cwd=place, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=err, text=True,
        )  # fmt: skip
    sampler = Sampler(here, meminfo, process.pid)
    sampler.start()
    try:
        out, _ = process.communicate("".join(json.dumps(job) + "\n" for job in jobs), MOST_S)
        left = count_left(here)
    finally:
        process.kill()
        sampler.stop()
        meminfo.close()
    if not out:
        raise RuntimeError(f"ramherd printed nothing: {(place / 'err').read_text()[-500:]}")
    return json.loads(out), sampler, left


def make_herd(name: str, seed: int) -> BurstHerd:
    number, bursting, _numbers = HERDS[name]
    return BurstHerd(name, burst_herd(seed, number, bursting, SHORT_S))


def search(name: str, agent: str, numbers: Sequence[int]) -> int:
    """The number that is the fastest on the first herd."""
    times: dict[int, float] = {}
    for number in numbers:
        result = run_herd(make_herd(name, 1), agent, number)
        times[number] = result.wall_s
        tell(row(name, f"search: {number}", [result]))
    return min(numbers, key=times.__getitem__)


def contend(name: str, agent: str, rounds: int, best: int) -> tuple[list[Result], list[Result]]:
    """ramherd and the best number in turns, each pair on another herd."""
    ours, theirs = [], []
    for seed in range(1, rounds + 1):
        herd = make_herd(name, seed)
        ours.append(run_herd(herd, agent, None))
        tell(row(name, f"ramherd, herd {seed}", ours[-1:]))
        theirs.append(run_herd(herd, agent, best))
        tell(row(name, f"at most {best}, herd {seed}", theirs[-1:]))
    return ours, theirs


def row(herd: str, tool: str, results: Sequence[Result]) -> tuple[str, ...]:
    """Medians; of what must not happen, the most."""
    return (
        herd, tool, str(min(result.done for result in results)),
        f"{median(result.wall_s for result in results):.1f}",
        f"{median(result.stops for result in results):g}",
        str(max(result.most_stops for result in results)),
        f"{median(result.requests for result in results):g}",
        f"{max(result.over_bytes for result in results) / MIB:.0f}",
        f"{median(result.redone_share for result in results):.1%}",
        str(sum(result.oom_kills for result in results)),
    )  # fmt: skip


def missed(name: str, ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[str]:
    """The bars that ramherd misses."""
    ratio = median(own.wall_s / other.wall_s for own, other in zip(ours, theirs, strict=True))
    asked = median(own.requests / other.requests for own, other in zip(ours, theirs, strict=True))
    if ratio > WALL:
        yield f"{ratio:.2f} times the wall time of the best number, {WALL:.2f} allowed"
    if name == "20/7" and asked > REQUESTS:
        yield f"{asked:.2f} times its model requests, {REQUESTS:.2f} allowed"
    for own in ours:
        if own.most_stops > STOPS:
            yield f"one job was stopped {own.most_stops} times, {STOPS} allowed"
        if own.over_bytes > OVER_BYTES:
            yield f"{own.over_bytes / MIB:.0f} MiB over the budget, {OVER_BYTES / MIB:.0f} allowed"
        if own.oom_kills or own.left:
            yield f"{own.oom_kills} OOM kills, {own.left} processes left"
    redone = median(own.redone_share for own in ours)
    if redone > REDONE:
        yield f"{redone:.1%} of the work redone, {REDONE:.0%} allowed"


def tell(cells: Sequence[str]) -> None:
    print(" | ".join(cells), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bursts")
    parser.add_argument("--agent", choices=("fake", "claude"), default="fake")
    parser.add_argument("--herd", choices=tuple(HERDS), action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--best", type=int, help="this number, without a search")
    parser.add_argument("--write", type=Path, metavar="DOCUMENT")
    args = parser.parse_args()
    # TERM alone would leave the cgroup behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    rows: list[Sequence[str]] = [HEAD]
    faults: list[str] = []
    for name in args.herd or tuple(HERDS):
        best = args.best or search(name, args.agent, HERDS[name][2])
        ours, theirs = contend(name, args.agent, args.rounds, best)
        rows += [row(name, "ramherd", ours), row(name, f"`--max-parallel {best}`", theirs)]
        faults += [f"{name}: {fault}" for fault in missed(name, ours, theirs)]
    day = datetime.now(UTC).date()
    title = f"{args.agent} agents, {day}, medians of {args.rounds} herds"
    publish([f"{title}:", "", *render_table(rows)], MARK, args.write)
    for fault in faults:
        print(f"bench: missed: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
