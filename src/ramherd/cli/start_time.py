"""`--at 22:00` and `--in 2h`: when the jobs of a herd may start."""

import argparse
import re
import time

from ramherd.core.errors import UsageError
from ramherd.core.units import format_duration, parse_duration, shown

CLOCK = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d))?")
EXAMPLE = "write it like 22:00 or 2026-12-31T22:00"
LONGEST_S = 366 * 86_400.0


def add_start_options(parser: argparse.ArgumentParser) -> None:
    at = "do not start before that time: 22:00, or 2026-12-31T22:00"
    parser.add_argument("--at", metavar="TIME", help=at)
    parser.add_argument(
        "--in", dest="in_", metavar="TIME", help="start after this time has passed: 90m, 2h"
    )


def read_start_at(options: argparse.Namespace, now_s: float) -> float | None:
    """Epoch seconds; None for now."""
    if options.at is not None and options.in_ is not None:
        raise UsageError("both --at and --in were given", hint="use one of them")
    if options.in_ is not None:
        return now_s + check_distance("--in", options.in_, parse_in(options.in_))
    if options.at is not None:
        at_s = parse_at(options.at, now_s)
        check_distance("--at", options.at, at_s - now_s)
        return at_s
    return None


def parse_in(text: str) -> float:
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"--in: {error}", hint="write it like 90m or 2h") from None


def parse_at(text: str, now_s: float) -> float:
    """A time of day means the next one, by the clock of this machine."""
    found = CLOCK.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--at {shown(text)} is not a time", hint=EXAMPLE)
    hour, minute, second = (int(part or 0) for part in found.groups()[3:])
    if hour > 23 or minute > 59 or second > 59:
        raise UsageError(f"--at {shown(text)} is not a time of day", hint=EXAMPLE)
    if found[1] is None:
        year, month, day = time.localtime(now_s)[:3]
        today, tomorrow = (make_time(year, month, day + more, found) for more in (0, 1))
        return today if today > now_s else tomorrow
    year, month, day = (int(part) for part in found.groups()[:3])
    at_s = make_time(year, month, day, found)
    if time.localtime(at_s)[:3] != (year, month, day):
        raise UsageError(f"--at {shown(text)} is not a date", hint=EXAMPLE)
    if at_s <= now_s:
        ago = format_duration(now_s - at_s)
        raise UsageError(f"--at {shown(text)} was {ago} ago", hint="give a time in the future")
    return at_s


def make_time(year: int, month: int, day: int, found: "re.Match[str]") -> float:
    hour, minute, second = (int(part or 0) for part in found.groups()[3:])
    return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))


def check_distance(flag: str, text: str, ahead_s: float) -> float:
    if ahead_s > LONGEST_S:
        raise UsageError(f"{flag} {shown(text)} is more than a year ahead")
    return ahead_s
