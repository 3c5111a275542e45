"""One plain line for each event: for pipes, logs and CI."""

import time
from collections.abc import Callable
from typing import TextIO

from ramherd.model import Event
from ramherd.show.reasons import render_reason
from ramherd.show.view import View


class LineShow:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def event(self, event: Event, name: str) -> None:
        if (line := render_event(event, name)) is not None:
            self.print(f"{time.strftime('%H:%M:%S', time.localtime(event.at_s))} {line}")

    def update(self, view: Callable[[], View]) -> None:
        """Lines come with events only."""

    def print(self, line: str) -> None:
        """A reader that went away, or a closed window, must not end the herd."""
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except (OSError, ValueError):
            pass

    def close(self) -> None:
        """Nothing to give back."""


def render_event(event: Event, name: str) -> str | None:
    what = WORDS.get(event.kind)
    if what is None:
        return None
    return printable(f"{what:<9} {name}: {render_reason(event.reason)}")


def printable(text: str) -> str:
    """Names and messages reach a terminal: no control sequence does."""
    return "".join(char if char.isprintable() else "?" for char in text)


WORDS = {
    "run_started": "start",
    "start_waits": "wait",
    "run_stopping": "stop",
    "run_killed": "kill",
    "leftovers_ended": "clear",
    "run_warning": "warning",
    "job_queued": "again",
    "job_done": "done",
    "job_failed": "failed",
    "job_cancelled": "cancel",
    "keeper_lost": "keeper",
}
