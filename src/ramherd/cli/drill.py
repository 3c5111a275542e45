"""`ramherd drill`: runs fake agents that really allocate, to try ramherd before trusting it."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from ramherd.cli.run import add_herd_options, load_settings, run_and_report
from ramherd.config.keys import RUN_KEYS
from ramherd.core.errors import UsageError
from ramherd.core.units import GIB
from ramherd.jobs.reader import Defaults, make_jobs
from ramherd.sim import agent
from ramherd.system.ids import new_id

# A quarter of a real agent's memory, and one second for each minute.
SIZE = 0.25
PACE = 60
# Room for some of the fifty agents at a time, and small enough for any machine.
BUDGET_BYTES = 2 * GIB
# Fake agents cost nothing, and no service runs a command.
NO_USE = ("max_cost_usd", "on_alert", "pass_env")
TRICKS: tuple[tuple[str, ...], ...] = (
    (),
    ("--burst-in-child",),
    ("--helper", "60"),
    ("--flood", "1MiB"),
    ("--burst-in-child", "--helper", "60"),
    ("--leak", "4MiB"),
    ("--ignore-term",),
)


EPILOG = """\
examples:
  ramherd drill                            50 fake agents in 2 GiB
  ramherd drill --agents 10 --budget 512MiB
  ramherd drill --json                     one JSON object on stdout at the end
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--agents", type=int, default=50, metavar="N", help="how many (50)")
    add("--seed", type=int, default=1, metavar="N", help="other numbers, other agents (1)")
    add("--pace", type=int, default=PACE, metavar="N", help="times faster than real ones (60)")
    add_herd_options(parser, (key for key in RUN_KEYS if not key.of_job and key.name not in NO_USE))
    parser.set_defaults(verb=drill)


def drill(options: argparse.Namespace) -> int:
    for name, value in (("agents", options.agents), ("pace", options.pace)):
        if value < 1:
            raise UsageError(f"--{name} {value} is below 1", hint=f"ramherd drill --{name} 10")
    herd = new_id()
    config = load_settings(
        options,
        budget=BUDGET_BYTES,
        time_scale=float(options.pace),
        size_scale=1 / SIZE,
        max_cpu_pressure=None,
    )
    tables = make_tables(options.seed, options.agents, options.pace)
    jobs = make_jobs(tables, "drill", herd, Defaults())
    return run_and_report(herd, jobs, config, options)


def make_tables(seed: int, number: int, pace: int) -> Iterator[dict[str, Any]]:
    """Some call tools, leave a process behind, print much, leak, or ignore signals."""
    for index in range(number):
        command = [
            sys.executable, "-I", "-S", agent.__file__, "--synthetic", str(seed),
            "--index", str(index), "--size", str(SIZE), "--time", str(1 / pace),
        ]  # fmt: skip
        yield {
            "name": f"agent-{index + 1:02}",
            "command": [*command, *TRICKS[index % len(TRICKS)]],
        }
