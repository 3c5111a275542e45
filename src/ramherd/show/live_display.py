"""The progress display on a terminal: a few lines that are drawn over.

Written by hand and part of the supervisor: it costs 0.1 MB there, where a library for it costs
7 MB, and a process of its own 15.
"""

import os
import time
from collections.abc import Callable
from typing import TextIO

from ramherd.core.model import Event
from ramherd.core.units import format_duration, format_size
from ramherd.show.event_lines import printable, render_event
from ramherd.show.nonblocking_writer import NonblockingWriter
from ramherd.show.reasons import render_reason
from ramherd.show.view import RunLine, View

EVERY_S = 0.2
BAR_CELLS = 24
CLEAR_BELOW = "\x1b[J"
# Starts and ends of single runs are seen in the table; these are worth a line that stays.
LASTING = (
    "job_failed", "job_cancelled", "leftovers_ended", "run_killed", "run_warning", "keeper_lost",
    "run_stopping", "level_calm", "level_tight", "level_single", "ledger_waits", "ledger_repaired",
    "usage_limit", "usage_served", "run_fallback",
)  # fmt: skip


class LiveShow:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._writer = NonblockingWriter(out)
        self._drawn: list[str] = []
        self._drawn_s = 0.0

    def event(self, event: Event, name: str) -> None:
        line = render_event(event, name)
        if line is not None and event.kind in LASTING:
            self.print(line)

    def update(self, view: Callable[[], View]) -> None:
        """The view is made only when it is drawn."""
        now = time.monotonic()
        if now - self._drawn_s < EVERY_S:
            return
        self._drawn_s = now
        columns, rows = self._size()
        lines = render_live(view(), columns, rows)
        with self._writer.lock:
            before, self._drawn = self._up(), [f"{line}\n" for line in lines]
            self._writer.write(before + CLEAR_BELOW + "".join(self._drawn))

    def close(self) -> None:
        """What is drawn goes: the summary follows."""
        with self._writer.lock:
            self._writer.write(self._up() + CLEAR_BELOW)
            self._writer.finish()
            self._drawn = []

    def print(self, line: str) -> None:
        self.print_above(f"{line}\n".encode(errors="replace"))

    def print_above(self, data: bytes) -> None:
        """Whole lines above what is drawn. What jobs print is as they printed it."""
        with self._writer.lock:
            lines = "".join(self._drawn).encode(errors="replace")
            self._writer.write_bytes((self._up() + CLEAR_BELOW).encode() + data + lines)

    @property
    def is_behind(self) -> bool:
        return self._writer.is_behind

    def _up(self) -> str:
        return f"\x1b[{len(self._drawn)}F" if self._drawn else ""

    def _size(self) -> tuple[int, int]:
        """A new terminal says 0 x 0 until somebody sets it."""
        try:
            columns, rows = os.get_terminal_size(self._out.fileno())
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24


def render_live(view: View, columns: int, rows: int) -> list[str]:
    """As many runs as there are rows for, the largest first; one row stays for the cursor."""
    ends = [render_progress(view), render_memory(view)]
    if view.waits_for is not None and view.queued:
        ends.append(f"next waits: {render_reason(view.waits_for)}")
    runs = [render_run(run) for run in sorted(view.runs, key=lambda run: -run.used_bytes)]
    space = max(rows - 1 - len(ends), 0)
    if len(runs) > space:
        runs = [*runs[: max(space - 1, 0)], f"  and {len(runs) - max(space - 1, 0)} more"]
    lines = [*ends[:2], *runs, *ends[2:]][: max(rows - 1, 1)]
    return [cut(line, columns - 1) for line in lines]


def render_progress(view: View) -> str:
    parts = [f"{view.ended}/{view.total}", f"{len(view.runs)} running", f"{view.queued} queued"]
    if view.failed:
        parts.append(f"{view.failed} failed")
    parts.append(format_duration(view.wall_s))
    if view.eta_s is not None:
        parts.append(f"about {format_duration(view.eta_s)} to go")
    return f"{bar(view.ended, view.total)} " + "  ".join(parts)


def render_memory(view: View) -> str:
    used, budget = format_size(view.used_bytes), format_size(view.budget_bytes)
    free = format_size(view.available_bytes)
    level = "" if view.level == "calm" else f"  level {view.level}"
    held = sum(run.held_s is not None for run in view.runs)
    waiting = f"  {held} held" if held else ""
    return (
        f"{bar(view.used_bytes, view.budget_bytes)} {used} of {budget}  "
        f"machine has {free}{level}{waiting}"
    )


def render_run(run: RunLine) -> str:
    again = f" (run {run.attempt})" if run.attempt > 1 else ""
    state = " ending" if run.ending else ""
    if run.held_s is not None and not run.ending:
        state = f" held for {format_duration(run.held_s)}"
    ran, used = format_duration(run.ran_s), format_size(run.used_bytes)
    of = f"/{format_size(run.grant_bytes)}" if run.grant_bytes else ""
    doing = f"  {printable(run.doing)}" if run.doing and not state else ""
    return f"  {used:>9}{of:<10} {ran:>7}  {printable(run.name)}{again}{state}{doing}"


def bar(part: float, whole: float) -> str:
    filled = round(BAR_CELLS * min(part / whole, 1.0)) if whole else 0
    return "[" + "#" * filled + "." * (BAR_CELLS - filled) + "]"


def cut(text: str, columns: int) -> str:
    """To the width of the terminal, counting East Asian wide characters as two cells."""
    if text.isascii():
        return text[:columns]
    import unicodedata  # noqa: PLC0415 - its tables are for names that are not English

    cells = 0
    for index, char in enumerate(text):
        cells += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if cells > columns:
            return text[:index]
    return text
