"""The progress display on a terminal: a table that is redrawn in place.

A frame replaces the previous one line by line, so that the table is never missing from the screen;
the whole screen is never cleared, because some terminals then copy it to their scrollback. The
cursor is not hidden and no mode outlasts a frame: a ramherd that is killed leaves the terminal as
it was.

Written by hand and part of the supervisor: it costs 0.1 MB there; a library would cost 7 MB, and a
separate process 15 MB.
"""

import time
from collections.abc import Callable, Container, Sequence
from typing import TextIO

from ramherd.core.model import Event, Why
from ramherd.core.units import format_duration, format_size
from ramherd.show.colors import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Palette, is_colored
from ramherd.show.event_lines import LASTING, printable, render_event
from ramherd.show.nonblocking_writer import NonblockingWriter
from ramherd.show.reasons import render_reason
from ramherd.show.tty import read_size
from ramherd.show.view import RunLine, View

EVERY_S = 0.2
# A narrower bar is too coarse to read.
LEAST_BAR_CELLS = 8
# The text beside the bars is padded to a multiple of this, so that their width seldom changes.
TEXT_STEP = 8
HEAD = f"{'MEMORY':>9} {'GRANTED':>9} {'TIME':>7}  NAME"
LEVEL_COLORS = {"calm": CYAN, "tight": YELLOW, "single": RED}

CLEAR_LINE, CLEAR_BELOW = "\x1b[K", "\x1b[J"
SAVE_CURSOR, RESTORE_CURSOR, DOWN = "\x1b7", "\x1b8", "\x1b[B"
# Terminals that support mode 2026 show a frame when it is complete; others ignore it.
BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
# A line that is too wide, because the window has just shrunk, is cut instead of wrapped.
WRAP_OFF, WRAP_ON = "\x1b[?7l", "\x1b[?7h"

# Pieces of text, each with its colour ("": none).
Line = list[tuple[str, str]]


class LiveShow:
    """`kinds` are the events that get a line above the table; None: all."""

    def __init__(self, out: TextIO, kinds: Container[str] | None = LASTING) -> None:
        self._out = out
        self._writer = NonblockingWriter(out)
        self._palette = Palette(is_colored=is_colored(out))
        self._kinds = kinds
        self._drawn: list[Line] = []
        self._drawn_s = 0.0
        self._columns = 0
        self._last_failed = ""

    def event(self, event: Event, name: str) -> None:
        line = render_event(event, name)
        if line is None:
            return
        if event.kind == "job_failed":
            self._last_failed = printable(f"{name}: {render_reason(event.reason)}")
        is_interrupt = event.reason.why is Why.INTERRUPTED
        if self._kinds is None or (event.kind in self._kinds and not is_interrupt):
            self.print(self._palette.paint_word(line))

    def update(self, view: Callable[[], View]) -> None:
        """The view is made only when it is drawn."""
        now = time.monotonic()
        if now - self._drawn_s < EVERY_S or self._writer.is_behind:
            return
        self._drawn_s = now
        columns, rows = read_size(self._out)
        lines = render_live(view(), columns, rows, self._last_failed)
        with self._writer.lock:
            is_resized, up = columns != self._columns, self._up(columns)
            self._drawn, self._columns = lines, columns
            self._writer.write(f"{BEGIN_FRAME}{up}{self._table(clear_first=is_resized)}{END_FRAME}")

    def close(self, last: Sequence[str] = ()) -> None:
        """Replaces the table with these lines."""
        with self._writer.lock:
            if last:
                text = "".join(f"{line}\n" for line in last)
                self._write_above(text.encode(errors="replace"), table=CLEAR_BELOW)
            else:
                up, rows = self._up(), len(self._drawn)
                self._writer.write(up + f"{CLEAR_LINE}\n" * rows + up if rows else "")
            self._drawn = []
            self._writer.finish()

    def print(self, line: str) -> None:
        self.print_above(f"{line}\n".encode(errors="replace"))

    def print_above(self, data: bytes) -> None:
        """Prints whole lines above the table. The output of jobs is not changed."""
        with self._writer.lock:
            self._write_above(data, self._table(clear_first=True))

    def _write_above(self, data: bytes, table: str) -> None:
        columns, _rows = read_size(self._out)
        lines, rows = data.splitlines(keepends=True), len(self._drawn)
        above = b"".join(clear_for(line, columns, rows) + line for line in lines)
        begin, self._columns = f"{BEGIN_FRAME}{self._up(columns)}", columns
        self._writer.write_bytes(begin.encode() + above + f"{table}{END_FRAME}".encode())

    @property
    def is_behind(self) -> bool:
        return self._writer.is_behind

    def _up(self, columns: int = 0) -> str:
        """Moves to the first line of the table. A window that became narrower has wrapped its
        lines.
        """
        wrapped = columns and columns < self._columns
        rows = sum(-(-cells(plain(line)) // columns) or 1 if wrapped else 1 for line in self._drawn)
        return f"\x1b[{rows}F" if rows else "\r"

    def _table(self, *, clear_first: bool) -> str:
        """With `clear_first`, the lines below the cursor hold other text."""
        if not self._drawn:
            return ""
        clear = CLEAR_LINE if clear_first else ""
        lines = (f"{clear}{self._painted(line)}{CLEAR_LINE}\n" for line in self._drawn)
        return f"{WRAP_OFF}{''.join(lines)}{CLEAR_BELOW}{WRAP_ON}"

    def _painted(self, line: Line) -> str:
        return "".join(self._palette.paint(text, color) for text, color in line)


def clear_for(line: bytes, columns: int, drawn: int) -> bytes:
    """Clears the drawn rows that a line will cover. Tabs and escape sequences in the line would
    leave parts of them.
    """
    wraps = min(len(line.expandtabs()) // columns, drawn)
    below = f"{SAVE_CURSOR}{f'{DOWN}{CLEAR_LINE}' * wraps}{RESTORE_CURSOR}" if wraps else ""
    return f"{CLEAR_LINE}{below}".encode() if drawn else b""


def render_live(view: View, columns: int, rows: int, last_failed: str = "") -> list[Line]:
    """As many runs as there are rows for, the oldest first; one row stays free for the cursor."""
    top, below = render_bars(view, columns - 1), []
    if last_failed:
        below.append([("last failed: ", RED), (last_failed, "")])
    if view.waits_for is not None and view.queued:
        below.append([("next waits: ", BOLD), (printable(render_reason(view.waits_for)), "")])
    space = rows - 1 - len(top) - len(below)
    lines = [*top, *render_runs(view.runs, space), *below][: max(rows - 1, 1)]
    return [cut_line(line, columns - 1) for line in lines]


def render_runs(runs: tuple[RunLine, ...], space: int) -> list[Line]:
    """In order of start, which does not change while they run."""
    if space < 2:
        return []
    ordered = [render_run(run) for run in sorted(runs, key=lambda run: -run.ran_s)]
    if len(ordered) > space - 1:
        left_out = len(ordered) - (space - 2)
        ordered = [*ordered[: space - 2], [(f"{'':20}and {left_out} more", DIM)]]
    return [[(HEAD, DIM)], *ordered]


def render_bars(view: View, columns: int) -> list[Line]:
    """Both bars are as wide as the window and the longer text allow."""
    progress, memory = render_progress(view), render_memory(view)
    widest = max(len(plain(progress)), len(plain(memory)))
    width = columns - len("[] ") - -(-widest // TEXT_STEP) * TEXT_STEP
    if width < LEAST_BAR_CELLS:
        return [progress, memory]
    return [
        [(bar(view.ended, view.total, width), GREEN), (" ", ""), *progress],
        [(bar(view.used_bytes, view.budget_bytes, width), LEVEL_COLORS.get(view.level, "")),
         (" ", ""), *memory],
    ]  # fmt: skip


def render_progress(view: View) -> Line:
    counts = f"{view.ended}/{view.total}  {len(view.runs)} running  {view.queued} queued"
    failed = f"  {view.failed} failed" if view.failed else ""
    left = f"  about {format_duration(view.eta_s)} left" if view.eta_s is not None else ""
    return [(counts, ""), (failed, RED), (f"  {format_duration(view.wall_s)}{left}", "")]


def render_memory(view: View) -> Line:
    used, budget = format_size(view.used_bytes), format_size(view.budget_bytes)
    free = format_size(view.available_bytes)
    level = "" if view.level == "calm" else f"  level {view.level}"
    held = sum(run.held_s is not None for run in view.runs)
    waiting = f"  {held} held" if held else ""
    return [
        (f"{used} of {budget}  machine has {free} free", ""),
        (level, LEVEL_COLORS.get(view.level, "")),
        (waiting, YELLOW),
    ]


def render_run(run: RunLine) -> Line:
    used, grant = format_size(run.used_bytes), format_size(run.grant_bytes)
    numbers = f"{used:>9} {grant if run.grant_bytes else '':>9} {format_duration(run.ran_s):>7}"
    again = f" (run {run.attempt})" if run.attempt > 1 else ""
    state, color = "", DIM
    if run.ending:
        state = " ending"
    elif run.held_s is not None:
        state, color = f" held for {format_duration(run.held_s)}", YELLOW
    doing = f"  {printable(run.doing)}" if run.doing and not state else ""
    doing += f"  {format_size(run.swapped_bytes)} in swap" if run.swapped_bytes else ""
    return [(f"{numbers}  {printable(run.name)}{again}", ""), (state, color), (doing, DIM)]


def bar(part: float, whole: float, width: int) -> str:
    filled = round(width * min(part / whole, 1.0)) if whole else 0
    return "[" + "#" * filled + "." * (width - filled) + "]"


def plain(line: Line) -> str:
    return "".join(text for text, _color in line)


def cut_line(line: Line, columns: int) -> Line:
    """Cuts the line to the width of the terminal."""
    kept: Line = []
    for text, color in line:
        shown = cut(text, columns)
        columns -= cells(shown)
        if shown:
            kept.append((shown, color))
        if shown != text:
            break
    return kept


def cells(text: str) -> int:
    """The width on a terminal: East Asian wide characters take two cells."""
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415 - its tables are only for names outside ASCII

    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, columns: int) -> str:
    if text.isascii():
        return text[:columns]
    for index, char in enumerate(text):
        columns -= cells(char)
        if columns < 0:
            return text[:index]
    return text
