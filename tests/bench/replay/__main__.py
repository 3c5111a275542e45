"""`python -m bench.replay`: the sets one after another, their tables, and the pages.

With `--write` the sections of docs/benchmarks.md and README.md and the picture are replaced. It
ends with 1 if ramherd lost a job, left a process, or had one killed for memory.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.replay.bars import BARS, Contest, bar_rows
from bench.replay.contest import contend
from bench.replay.pages import render_contest, write_pages
from bench.replay.sets import SETS, read_profiles
from bench.replay.table import full_row, render_table
from bench.replay.verdict import faults
from ramherd.core.errors import RamherdError
from ramherd.sim.oracle import oracle_makespan_s
from ramherd.sim.profiles import Profile

# A tool that takes this many times as long as the oracle is stopped.
PATIENCE = 2.5
# Of a short herd too little for a busy machine.
LEAST_S = 90.0
FULL = ("whole", "many", "fifty")


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    # In the background SIGINT is ignored, and TERM alone would leave the arena behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        contests = [hold(name, *read_profiles(), options.stand_in) for name in options.sets]
        if set(options.sets) & set(BARS):
            tell("\n".join(render_table(bar_rows(contests))))
        if options.write:
            write_pages(Path(options.write), contests)
    except RamherdError as error:
        print(f"bench: {error}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return 1
    found = [
        f"{contest.herd.name}: {fault}" for contest in contests for fault in faults(contest.ours)
    ]
    for fault in found:
        print(f"bench: ramherd, {fault}", file=sys.stderr)
    return 1 if found else 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.replay")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--write", metavar="DIR", help="the project whose pages are replaced")
    parser.add_argument("--stand-in", type=int, metavar="N", help="ramherd with a fixed number")
    options = parser.parse_args(argv)
    options.sets = options.sets or list(FULL)
    if options.write and options.stand_in:
        parser.error("--write with --stand-in: the pages tell of the governor")
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"no set {unknown.pop()!r}, only {', '.join(SETS)}")
    return options


def hold(name: str, profiles: Sequence[Profile], source: str, stand_in: int | None) -> Contest:
    make_herd, make_tools = SETS[name]
    herd = make_herd(profiles)
    oracle_s = oracle_makespan_s(herd.courses(), herd.trace_budget_bytes) / herd.speed
    tell(f"{herd.name}: {herd.jobs} agents, the oracle takes {oracle_s:.0f} s")
    most_s = max(PATIENCE * oracle_s, LEAST_S)
    pairs = []
    for make_tool in make_tools(herd, stand_in):
        pairs.append(contend(herd, make_tool, oracle_s=oracle_s, most_s=most_s))
        tell(" ".join(full_row(pairs[-1][0])))
    contest = Contest(name, herd, source, oracle_s, [outcome for outcome, _ in pairs], pairs[0][1])
    tell("\n".join(render_contest(contest)))
    return contest


def tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
