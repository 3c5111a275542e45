"""The fake agent's command line."""

import argparse
from collections.abc import Sequence

from ramherd.core.errors import UsageError
from ramherd.core.units import parse_size

_WHAT = "A fake agent: it really allocates along a memory profile, and misbehaves as asked."


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ramherd.sim.agent", description=_WHAT)
    _add_profile(parser)
    _add_trouble(parser)
    options = parser.parse_args(argv)
    sources = (options.flat is not None, options.synthetic is not None, options.traces is not None)
    if sum(sources) != 1 and options.die_at_birth is None:
        parser.error("one of --traces, --synthetic and --flat is needed")
    if options.flat and not options.seconds:
        parser.error("--flat needs --for")
    if options.fail_first and not options.state:
        parser.error("--fail-first needs --state, where attempts are counted")
    return options


def _add_profile(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--traces", metavar="FILE", help="trace file, one JSON object a line")
    add("--synthetic", metavar="SEED", type=int, help="built-in profiles of this seed")
    add("--index", metavar="N", type=_count, default=0, help="which profile, from 0")
    add("--flat", metavar="SIZE", type=_size, help="the same memory all the time")
    add("--for", dest="seconds", metavar="SECONDS", type=_factor, help="how long --flat lasts")
    add("--size", metavar="FACTOR", type=_factor, default=1.0, help="scale the memory")
    add("--time", metavar="FACTOR", type=_factor, default=1.0, help="scale the time")
    add("--state", metavar="FILE", default="", help="go on from here if RAMHERD_RESUMED=1")
    # What `simulate` takes as the least that a resume loses.
    add("--checkpoint", metavar="SECONDS", type=float, default=10.0,
        help="trace seconds between points to go on from; 0: from each")  # fmt: skip
    add("--lock", metavar="FILE", help="exit with 99 if another copy holds this lock")


def _add_trouble(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--leak", metavar="SIZE", type=_size, default=0, help="per real second, never given back")
    add("--burst-in-child", action="store_true", help="a child holds what is above the plateau")
    add("--helper", metavar="SECONDS", type=_count, nargs="?", const=300,
        help="leave a process in a session of its own")  # fmt: skip
    add("--ignore-term", action="store_true")
    add("--flood", metavar="SIZE", type=_size, default=0, help="print that much after `ready`")
    add("--die-at-birth", metavar="CODE", type=_count, help="exit at once")
    add("--fail-first", metavar="N", type=_count, default=0, help="attempts that exit with 1")


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _factor(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below zero")
    return value
