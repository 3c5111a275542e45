"""Colours on a terminal: a few, each with one meaning.

NO_COLOR turns them off (no-color.org).
"""

import os
from typing import TextIO

from ramherd.show.tty import is_drawable

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
# The first word of a line about a job.
WORD_COLORS = {
    "done": GREEN, "failed": RED, "cancelled": YELLOW, "lost": RED,
    "cancel": YELLOW, "warning": YELLOW, "limit": YELLOW, "model": YELLOW, "alert": YELLOW,
    "keeper": YELLOW, "pause": YELLOW,
}  # fmt: skip


def is_colored(out: TextIO) -> bool:
    return is_drawable(out) and not os.environ.get("NO_COLOR")


class Palette:
    """Colours, or none."""

    def __init__(self, *, is_colored: bool) -> None:
        self.is_colored = is_colored

    def paint(self, text: str, color: str) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self.is_colored and text and color else text

    def paint_word(self, line: str) -> str:
        """Colours the first word, if it is the state of a job."""
        word, space, rest = line.partition(" ")
        return self.paint(word, WORD_COLORS.get(word, "")) + space + rest
