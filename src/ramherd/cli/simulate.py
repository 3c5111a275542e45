"""`ramherd simulate`: the governor's code on traces, compared with other tools and an oracle."""

import argparse
import json
from pathlib import Path

from ramherd.core.errors import UsageError
from ramherd.core.memory import Mode
from ramherd.core.units import format_duration, format_size, parse_size
from ramherd.core.values import nearest
from ramherd.sim.course import read_courses
from ramherd.sim.result import SimResult

EPILOG = """\
examples:
  ramherd simulate --budget 4GB --copies 4                       built-in traces
  ramherd simulate --traces agents.jsonl --policy fixed:8        8 at a time
  ramherd simulate --scenario nine-tenths --plot memory.svg

A trace file has one JSON object for each line:
  {"task": "a", "t_s": [0, 1.0], "mb": [12.5, 190]}
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--traces", metavar="FILE", help="memory over time, JSON lines (built-in ones)")
    add("--copies", type=int, default=1, metavar="N", help="how often the whole file is used (1)")
    add("--budget", default="4GB", metavar="SIZE", help="memory all runs together may use (4GB)")
    add("--policy", default="grants", metavar="P",
        help="grants, fixed:N, reserve:SIZE or memfree:SIZE (grants)")  # fmt: skip
    add("--no-resume", action="store_true", help="agents start over after they were stopped")
    add("--seed", type=int, default=1, metavar="N", help="other built-in traces (1)")
    add("--scenario", metavar="NAME", help="a built-in scenario, not traces; `list` lists them")
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--plot", metavar="FILE", help="a picture of memory over time, .svg or .png")
    parser.set_defaults(verb=simulate_verb)


def simulate_verb(options: argparse.Namespace) -> int:
    if options.scenario == "list":
        return list_scenarios()
    plot = check_plot(options.plot)
    result = play_scenario(options) if options.scenario else play_traces(options)
    if plot is not None:
        from ramherd.sim.plot import write_plot  # noqa: PLC0415 - only for pictures

        write_plot(plot, result.tally.picture or [], result.budget_bytes)
    print(json.dumps(result.as_json()) if options.json else render(result))
    return 0 if result.tally.failed == 0 and result.lost == 0 else 1


def check_plot(name: str | None) -> Path | None:
    """Checked before a long simulation, not after it."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix not in (".svg", ".png"):
        raise UsageError(f"--plot: cannot draw {name}", hint="end its name with .svg or .png")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot: {path.parent} is not a directory")
    return path


def list_scenarios() -> int:
    from ramherd.sim.scenarios import SCENARIOS  # noqa: PLC0415

    print("\n".join(SCENARIOS))
    return 0


def play_scenario(options: argparse.Namespace) -> SimResult:
    from ramherd.sim.scenarios import SCENARIOS, play  # noqa: PLC0415

    if options.scenario not in SCENARIOS:
        raise UsageError(
            f"no scenario {options.scenario!r}", hint=nearest(options.scenario, SCENARIOS)
        )
    return play(options.scenario, picture=options.plot is not None).result


def play_traces(options: argparse.Namespace) -> SimResult:
    from ramherd.sim.simulate import simulate  # noqa: PLC0415

    if options.copies < 1:
        raise UsageError(f"--copies {options.copies} is below 1")
    return simulate(
        read_courses(options.traces, options.seed) * options.copies,
        parse_size(options.budget),
        options.policy,
        traces=options.traces or f"synthetic:{options.seed}",
        mode=Mode.STARTS_OVER if options.no_resume else Mode.RESUMES,
        picture=options.plot is not None,
    )


def render(result: SimResult) -> str:
    tally, figures = result.tally, result.as_json()
    return "\n".join(
        (
            f"{result.policy} on {result.traces}: {tally.done} of {result.jobs} jobs done "
            f"in {format_duration(tally.makespan_s)}, budget {format_size(result.budget_bytes)}",
            f"  of the oracle {result.oracle_share:.1%} ({format_duration(result.oracle_s)}), "
            f"memory used {figures['utilisation']:.1%}, peak {format_size(tally.peak_bytes)}",
            f"  {tally.oom_kills} OOM kills, {tally.preempted} preempted, {tally.recycled} "
            f"recycled, {result.redone_share:.1%} of the work redone, "
            f"{tally.failed} failed, {result.lost} lost",
        )
    )
