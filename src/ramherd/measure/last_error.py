"""The line on standard error that explains why a program failed: mostly the last one."""

import re
from pathlib import Path

from ramherd.measure.run_output import read_tail

# Enough for a Node stack with the error above it, which is longer than most errors.
TAIL_BYTES = 8 << 10
LINE_LENGTH = 300
# Colours and other terminal sequences.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
# Lines at the end of Node's output that do not explain the error.
SAYS_NOTHING = re.compile(r"at |Node\.js v\d|node:internal")
LETTERS = re.compile(r"[^\W\d_]{2}")


def read_last_error(run_dir: Path) -> str:
    """The error of a run that has ended; "" if it printed none, or its output was removed."""
    return parse_last_error(read_errors(run_dir))


def read_errors(run_dir: Path) -> str:
    """The end of a run's standard error."""
    return read_tail(run_dir, "err", TAIL_BYTES).decode(errors="replace")


def parse_last_error(printed: str) -> str:
    """The last line that contains words. Indented lines belong to the line above them."""
    plain = ESCAPES.sub("", printed).replace("\r", "\n")
    lines = [line.rstrip() for line in plain.splitlines() if is_telling(line)]
    outer = [line for line in lines if not line[0].isspace()]
    last = " ".join((outer or lines or [""])[-1].split())
    return last if len(last) <= LINE_LENGTH else last[: LINE_LENGTH - 3] + "..."


def is_telling(line: str) -> bool:
    return LETTERS.search(line) is not None and SAYS_NOTHING.match(line.strip()) is None
