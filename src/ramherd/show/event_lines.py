"""One plain line for each event: for pipes, logs and CI."""

import time
from collections.abc import Callable, Container, Mapping
from typing import Any, TextIO

from ramherd.core.model import Event
from ramherd.core.reasons import Reason, reason_from_json
from ramherd.show.nonblocking_writer import NonblockingWriter
from ramherd.show.reasons import render_reason
from ramherd.show.view import View

FOLLOWS_REFUSAL = ("run_stopping", "job_queued", "start_waits")


class LineShow:
    """`kinds` are the events that are shown; None: all."""

    def __init__(self, out: TextIO, kinds: Container[str] | None = None) -> None:
        self._writer = NonblockingWriter(out)
        self._kinds = kinds
        self._refusal: Reason | None = None

    def event(self, event: Event, name: str) -> None:
        if self._kinds is not None and event.kind not in self._kinds:
            return
        if self._repeats_refusal(event):
            return
        if (line := render_event(event, name)) is not None:
            self.print(f"{time.strftime('%H:%M:%S', time.localtime(event.at_s))} {line}")

    def _repeats_refusal(self, event: Event) -> bool:
        """An API that refuses one job refuses all: one line says so, not three for each of them."""
        if event.kind == "usage_limit":
            self._refusal = event.reason
            return False
        return event.kind in FOLLOWS_REFUSAL and event.reason == self._refusal

    def update(self, view: Callable[[], View]) -> None:  # noqa: ARG002
        """Lines are written with events; this writes what the reader was too slow for then."""
        self._writer.flush()

    def print(self, line: str) -> None:
        self._writer.write(line + "\n")

    def close(self) -> None:
        self._writer.finish()


def render_event(event: Event, name: str) -> str | None:
    what = WORDS.get(event.kind)
    if what is None:
        return None
    return printable(f"{what:<9} {name}: {render_reason(event.reason)}")


def render_stored(kind: str, name: str, reason: Mapping[str, Any]) -> str:
    """An event from a store. A kind that is not in WORDS is shown as it is stored."""
    sentence = render_reason(reason_from_json(reason))
    return printable(f"{WORDS.get(kind, kind):<9} {name}: {sentence}")


def printable(text: str) -> str:
    """Names and messages reach a terminal: no control sequence does."""
    return "".join(char if char.isprintable() else "?" for char in text)


WORDS = {
    "run_started": "start",
    "start_waits": "wait",
    "run_held": "held",
    "run_granted": "granted",
    "run_stopping": "stop",
    "level_calm": "calm",
    "api_calm": "calm",
    "usage_limit": "limit",
    "usage_served": "served",
    "level_tight": "tight",
    "level_single": "single",
    "ledger_waits": "ledger",
    "ledger_repaired": "ledger",
    "run_killed": "kill",
    "leftovers_ended": "clear",
    "run_warning": "warning",
    "run_fallback": "model",
    "job_queued": "again",
    "herd_submitted": "herd",
    "herd_ended": "herd",
    "herd_stuck": "herd",
    "job_waiting": "waiting",
    "run_adopted": "adopted",
    "alert": "alert",
    "paused": "pause",
    "resumed": "resume",
    "job_done": "done",
    "job_failed": "failed",
    "job_cancelled": "cancel",
    "keeper_lost": "keeper",
    "ballast_released": "disk",
    "ballast_restored": "disk",
    "logs_removed": "logs",
    "logs_smaller": "logs",
    "residue": "residue",
    "on_done_failed": "on_done",
    "starts_paused": "pause",
    "starts_resumed": "resume",
    "store_restored": "store",
    "runtime_missing": "runtime",
    "runtime_restored": "runtime",
}
