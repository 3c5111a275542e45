"""One tool, one herd, one arena."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.replay.arena import Arena, make_arena
from bench.replay.herd import AgentJob, Herd, make_jobs
from bench.replay.meminfo import Meminfo
from bench.replay.outcome import Outcome, read_work
from bench.replay.sampler import Sampler
from bench.replay.told import NOTHING, Told, parse_told
from bench.replay.tools import Tool, enter
from ramherd.core.errors import RamherdError
from ramherd.core.units import MIB

# For the tool itself, beside its agents: 35 MB are the most that one was seen to take.
TOOL_BYTES = 64 * MIB
# What has ended may need this long to be gone.
SETTLE_S = 1.0
# A tool that is stopped may end what it started.
STOP_S = 10.0

MakeTool = Callable[[Sequence[AgentJob], Path], Tool]


@dataclass(frozen=True, slots=True)
class Watched:
    makespan_s: float
    was_stopped: bool
    left: int


def contend(
    herd: Herd, make_tool: MakeTool, *, oracle_s: float, most_s: float
) -> tuple[Outcome, Told]:
    with tempfile.TemporaryDirectory(prefix="replay-") as name, arena_of(herd) as arena:
        place = Path(name)
        jobs = make_jobs(herd, place)
        tool = make_tool(jobs, place)
        sampler, watched = watch(tool, arena, place, most_s)
        work = read_work(jobs)
        if work.begun == 0:
            raise RamherdError(f"{tool.name} ran nothing: {(place / 'err').read_text()[-500:]}")
        outcome = Outcome(
            tool=tool.name, work=work, oracle_s=oracle_s, makespan_s=watched.makespan_s,
            was_stopped=watched.was_stopped, left=watched.left, oom_kills=sampler.oom_kills,
            rss_bytes=sampler.rss_bytes, cpu_s=sampler.cpu_s, samples=sampler.samples,
            kill_times_s=sampler.kill_times_s, costs=sampler.costs,
        )  # fmt: skip
        return outcome, parse_told((place / "out").read_text()) if tool.is_ours else NOTHING


@contextmanager
def arena_of(herd: Herd) -> Iterator[Arena]:
    arena = make_arena(herd.budget_bytes + herd.slack_bytes + TOOL_BYTES)
    try:
        yield arena
    finally:
        arena.remove()


def watch(tool: Tool, arena: Arena, place: Path, most_s: float) -> tuple[Sampler, Watched]:
    meminfo = Meminfo(place / "meminfo", arena.limit_bytes)
    begin = time.monotonic()
    process = start(tool, arena, place, meminfo)
    sampler = Sampler(arena, meminfo, process.pid)
    sampler.start()
    try:
        is_over = wait(process, most_s)
        makespan_s = time.monotonic() - begin
        if not is_over:
            stop(process)
        left = count_left(arena)
    finally:
        sampler.stop()
        meminfo.close()
    return sampler, Watched(makespan_s, not is_over, left)


def start(tool: Tool, arena: Arena, place: Path, meminfo: Meminfo) -> "subprocess.Popen[bytes]":
    (place / "in").write_text(tool.stdin)
    env = {
        **os.environ, "HOME": str(place), "TMPDIR": str(place),
        "XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config"),
        "RAMHERD_RUNTIME_DIR": str(place / "runtime"),
    }  # fmt: skip
    command = enter(tool.command, arena.path, meminfo.path if tool.own_meminfo else None)
    with (
        (place / "in").open() as given,
        (place / "out").open("w") as out,
        (place / "err").open("w") as err,
    ):
        return subprocess.Popen(command, env=env, cwd=place, stdin=given, stdout=out, stderr=err)


def wait(process: "subprocess.Popen[bytes]", most_s: float) -> bool:
    """Whether it came to its end."""
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    if not wait(process, STOP_S):
        process.kill()
        process.wait()


def count_left(arena: Arena) -> int:
    deadline = time.monotonic() + SETTLE_S
    while (left := len(arena.pids())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
