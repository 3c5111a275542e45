"""A screen that is drawn again in its place: nothing of it stays in the scrollback."""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from ramherd.show.live_display import cut

# The alternate screen, with the cursor hidden; and back.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def can_redraw(out: TextIO) -> bool:
    return out.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


class Redraw:
    """Fits the window, which may change its size at any time."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: Sequence[str] = ()

    def __enter__(self) -> Self:
        self._write(ENTER)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """The last lines stay on the screen."""
        self._write(LEAVE + "".join(f"{line}\n" for line in self._last))

    @property
    def columns(self) -> int:
        return self._size()[0]

    def show(self, lines: Sequence[str]) -> None:
        columns, rows = self._size()
        self._last = fit_rows(lines, rows)
        text = "\r\n".join(cut(line, columns) + CLEAR_LINE for line in self._last)
        self._write(HOME + text + CLEAR_BELOW)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _size(self) -> tuple[int, int]:
        """A new terminal has 0 x 0 until somebody sets it."""
        try:
            columns, rows = os.get_terminal_size(self._out.fileno())
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24


def fit_rows(lines: Sequence[str], rows: int) -> Sequence[str]:
    """The last line, which counts them all, is always shown."""
    if len(lines) <= rows:
        return lines
    kept = max(rows - 2, 1)
    return [*lines[:kept], f"... and {len(lines) - kept - 1} more", lines[-1]][:rows]
