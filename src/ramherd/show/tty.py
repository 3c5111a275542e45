"""Properties of the terminal that a display draws on."""

import os
import stat
from typing import TextIO


def is_drawable(out: TextIO) -> bool:
    """Whether `out` is a terminal whose cursor can be moved: not with TERM=dumb."""
    return out.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def is_pipe(out: TextIO) -> bool:
    """Whether another program reads it, which may print on the terminal at any time."""
    mode = os.fstat(out.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def read_size(out: TextIO) -> tuple[int, int]:
    """Columns and rows. A new terminal has 0 x 0 until its size is set."""
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except OSError:
        columns = rows = 0
    return columns or 80, rows or 24
