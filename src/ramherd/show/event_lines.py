"""One plain line for each change of a job's state: for pipes, logs and CI."""

import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, TextIO

from ramherd.core.model import Event, Why
from ramherd.core.reasons import Reason, reason_from_json
from ramherd.core.units import format_duration
from ramherd.show.nonblocking_writer import NonblockingWriter
from ramherd.show.reasons import render_reason
from ramherd.show.view import View

# Events that a user needs to see even after the herd has ended.
LASTING = frozenset({
    "job_cancelled", "run_warning", "run_fallback", "alert", "on_done_failed", "herd_stuck",
    "usage_limit", "usage_served", "starts_paused", "starts_resumed", "paused", "resumed",
    "keeper_lost", "ledger_waits", "ledger_repaired", "store_restored", "runtime_missing",
    "runtime_restored", "ballast_released", "logs_removed", "logs_smaller",
})  # fmt: skip
# The states of jobs and of memory.
CHANGES = LASTING | {
    "run_started", "run_adopted", "run_held", "run_granted", "job_queued", "job_waiting",
    "job_done", "job_failed", "level_calm", "level_tight", "level_single", "api_calm",
}  # fmt: skip
ACTIONS = {"run_started": "started: ", "run_held": "held: "}
STARTS = ("run_started", "run_adopted")
ENDS = ("job_queued", "job_done", "job_failed", "job_cancelled")
# A shorter grace period, as in a drill in scaled time, is shown as 0.0s.
LEAST_GRACE_S = 0.05
FOLLOWS_REFUSAL = ("run_stopping", "job_queued", "start_waits")


class LineShow:
    """`kinds` are the events that are shown; None: all. With `has_summary`, the end of a job has a
    short line, because the summary gives the cause of a failure.
    """

    def __init__(
        self, out: TextIO, kinds: Container[str] | None = None, *, has_summary: bool = False
    ) -> None:
        self._writer = NonblockingWriter(out)
        self._kinds, self._has_summary = kinds, has_summary
        self._refusal: Reason | None = None
        # The start times of running jobs.
        self._started_s: dict[str, float] = {}
        # The job whose wait, or the end of all runs, was shown last.
        self._shown_once = ""

    def event(self, event: Event, name: str) -> None:
        if event.kind in STARTS:
            self._started_s[event.job] = event.at_s
        if self._is_shown(event) and (line := self._render(event, name)) is not None:
            self.print(f"{time.strftime('%H:%M:%S', time.localtime(event.at_s))} {line}")
        if event.kind in ENDS:
            self._started_s.pop(event.job, None)

    def _is_shown(self, event: Event) -> bool:
        if self._repeats_refusal(event):
            return False
        if self._kinds is None or event.kind in self._kinds:
            return True
        return self._kinds is CHANGES and self._is_new(self._find_silence(event))

    def _find_silence(self, event: Event) -> str:
        """While nothing runs, or all runs end, one line gives the reason for the silence."""
        if event.kind == "start_waits" and not self._started_s:
            return f"{event.job} {event.reason.why}"
        is_interrupt = event.reason.why is Why.INTERRUPTED
        return "interrupted" if event.kind == "run_stopping" and is_interrupt else ""

    def _is_new(self, what: str) -> bool:
        before, self._shown_once = self._shown_once, what or self._shown_once
        return bool(what) and what != before

    def _render(self, event: Event, name: str) -> str | None:
        if self._has_summary and event.kind in ("job_done", "job_failed"):
            return render_end(event, name, self._started_s.get(event.job))
        is_for_all = event.kind == "run_stopping" and self._kinds is CHANGES
        return render_event(event, "all runs" if is_for_all else name)

    def _repeats_refusal(self, event: Event) -> bool:
        """An API that refuses one job refuses all: one line reports it, not three for each job."""
        if event.kind == "usage_limit":
            self._refusal = event.reason
            return False
        return event.kind in FOLLOWS_REFUSAL and event.reason == self._refusal

    def update(self, view: Callable[[], View]) -> None:  # noqa: ARG002
        """Lines are written with events; this writes lines that the reader was too slow for."""
        self._writer.flush()

    def print(self, line: str) -> None:
        self._writer.write(line + "\n")

    def close(self, last: Sequence[str] = ()) -> None:
        for line in last:
            self.print(line)
        self._writer.finish()


def render_end(event: Event, name: str, started_s: float | None) -> str:
    """`done      build after 1m15s`."""
    after = "" if started_s is None else f" after {format_duration(event.at_s - started_s)}"
    return printable(f"{WORDS[event.kind]:<9} {name}{after}")


def render_event(event: Event, name: str) -> str | None:
    word = WORDS.get(event.kind)
    if word is None or (event.kind == "run_killed" and is_at_once(event.reason)):
        return None
    return printable(f"{word:<9} {name}: {render_cause(event.kind, event.reason)}")


def is_at_once(reason: Reason) -> bool:
    """A run without a grace period is killed as soon as it is stopped: not worth a line."""
    return float(reason.numbers.get("grace_s", 1.0)) < LEAST_GRACE_S


def render_stored(kind: str, name: str, reason: Mapping[str, Any]) -> str:
    """The line of a stored event. A kind that is not in WORDS is shown as it is stored."""
    sentence = render_cause(kind, reason_from_json(reason))
    return printable(f"{WORDS.get(kind, kind):<9} {name}: {sentence}")


def render_cause(kind: str, reason: Reason) -> str:
    """The sentence of the reason, without the action that the first word of the line names."""
    return render_reason(reason).removeprefix(ACTIONS.get(kind, ""))


def printable(text: str) -> str:
    """Names and messages reach a terminal, so control characters are removed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)


WORDS = {
    "run_started": "start",
    "start_waits": "wait",
    "run_held": "held",
    "run_granted": "granted",
    "run_reclaimed": "swap",
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
    "job_edited": "edit",
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
