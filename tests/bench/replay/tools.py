"""The tools of a contest, and how each is called.

Everybody may try a killed agent again as often as it likes. ramherd reads its cgroup itself;
GNU parallel reads /proc/meminfo, and gets one that tells of the arena.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.replay.herd import AgentJob, Herd, job_tables
from ramherd.core.errors import RamherdError
from ramherd.sim.profiles import MB

TRIES = 100
# What people give --memfree for one agent, and the same to --memsuspend.
FREE_BYTES = 500 * MB
# Sleeps between looks at the memory grow to this many milliseconds.
LONGEST_SLEEP = b"($ms < 1000)"
RETRY = f'for try in $(seq {TRIES}); do eval "$0" && exit 0; done; exit 1'


@dataclass(frozen=True, slots=True)
class Tool:
    """`stdin` is what it gets there. With `own_meminfo` /proc/meminfo tells of the arena."""

    name: str
    command: Sequence[str]
    stdin: str
    own_meminfo: bool = False

    @property
    def is_ours(self) -> bool:
        return self.name == RAMHERD


RAMHERD = "ramherd"


def ramherd(herd: Herd, jobs: Sequence[AgentJob], *, stand_in: int | None = None) -> Tool:
    """`stand_in` is a fixed number instead of the governor: to try the benchmark itself."""
    command = [sys.executable, "-m", "ramherd", "run", "-", "--json"]
    command += ["--budget", f"{herd.budget_bytes}B", "--budget-share", "1"]
    # The processor is given to all at 60 times its use: only memory may decide, as elsewhere.
    command += ["--max-cpu-pressure", "1"]
    command += ["--time-scale", f"{herd.speed:g}", "--size-scale", f"{herd.size:g}"]
    tables = list(job_tables(jobs))
    if stand_in is not None:
        command = [*command[:6], "--max-parallel", str(stand_in), "--memory", "1MB"]
        tables = [{"name": table["name"], "command": table["command"]} for table in tables]
    return Tool(RAMHERD, command, "".join(json.dumps(table) + "\n" for table in tables))


def fixed(number: int, jobs: Sequence[AgentJob]) -> Tool:
    """xargs, the lightest there is. A job that fails is tried again in its place."""
    command = ["xargs", "-d", "\n", "-n", "1", "-P", str(number), "sh", "-c", RETRY]
    return Tool(f"xargs -P {number}", command, shell_lines(jobs))


def memory_parallel(option: str, herd: Herd, jobs: Sequence[AgentJob], place: Path) -> Tool:
    """GNU parallel with --memfree or --memsuspend; starts a second of trace apart."""
    command = [
        "perl", str(make_parallel(place, herd.speed)), "--will-cite", "--plain", "--ungroup",
        "--jobs", "250", "--delay", f"{1 / herd.speed:.4f}", "--retries", str(TRIES),
        f"--{option}", str(herd.scaled(FREE_BYTES)),
    ]  # fmt: skip
    return Tool(f"parallel --{option}", command, shell_lines(jobs), own_meminfo=True)


def make_parallel(place: Path, speed: float) -> Path:
    """A copy whose longest sleep is scaled as all times are."""
    copy = place / "parallel"
    copy.write_bytes(scale_sleeps(find_parallel().read_bytes(), speed))
    return copy


def find_parallel() -> Path:
    found = shutil.which("parallel")
    if found is None:
        raise RamherdError("GNU parallel is not there", hint="make test-tools")
    return Path(found)


def scale_sleeps(program: bytes, speed: float) -> bytes:
    if LONGEST_SLEEP not in program:
        raise RamherdError(f"this GNU parallel has no {LONGEST_SLEEP.decode()} to be scaled")
    return program.replace(LONGEST_SLEEP, b"($ms < %.1f)" % (1000 / speed))


def shell_lines(jobs: Sequence[AgentJob]) -> str:
    return "".join(shlex.join(job.command) + "\n" for job in jobs)


def enter(command: Sequence[str], arena: Path, meminfo: Path | None) -> list[str]:
    """The same process all the way: joins the arena, then becomes the tool."""
    join = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(arena)]
    if meminfo is None:
        return [*join, *command]
    mount = 'mount --bind "$0" /proc/meminfo && exec "$@"'
    return [*join, "unshare", "--mount", "sh", "-c", mount, str(meminfo), *command]
