"""A screen that is redrawn in place and leaves nothing in the scrollback."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from ramherd.show.live_display import CLEAR_BELOW, CLEAR_LINE, cut
from ramherd.show.tty import read_size

# The alternate screen, with the cursor hidden; and back.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"


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
        return read_size(self._out)[0]

    def show(self, lines: Sequence[str]) -> None:
        columns, rows = read_size(self._out)
        self._last = fit_rows(lines, rows)
        text = "\r\n".join(cut(line, columns) + CLEAR_LINE for line in self._last)
        self._write(HOME + text + CLEAR_BELOW)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def fit_rows(lines: Sequence[str], rows: int) -> Sequence[str]:
    """The last line, which has the total, is always shown."""
    if len(lines) <= rows:
        return lines
    kept = max(rows - 2, 1)
    return [*lines[:kept], f"... and {len(lines) - kept - 1} more", lines[-1]][:rows]
