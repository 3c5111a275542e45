"""The page of `ramherd status`: budget, jobs, limits and warnings, on one screen."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import count, format_size
from ramherd.show.event_lines import printable
from ramherd.show.job_table import in_order, render_counts, render_table
from ramherd.show.live_display import cut
from ramherd.show.reasons import render_reason
from ramherd.show.wait_text import render_paused, render_span, render_wait

LABEL_WIDTH = 9
OPEN = ("running", "held", "queued", "waiting")
# The jobs get the rest of the screen, but at least this many lines.
LEAST_JOBS = 3


def render_status(status: Mapping[str, Any], columns: int, rows: int) -> list[str]:
    """`status` is the object of `ramherd status --json`, with `open_jobs`: the jobs of herds that
    have not ended. No more lines than the screen has, except for LEAST_JOBS jobs.
    """
    now_s = time.time()
    head = [f"{label:<{LABEL_WIDTH}}{text}" for label, text in describe(status, now_s)]
    lines = [cut(printable(line), columns) for line in head]
    jobs = [job for job in in_order(status["open_jobs"]) if job["state"] in OPEN]
    if not jobs:
        return lines
    # A blank line and the header of the table; a line for the prompt.
    room = max(rows - len(lines) - 3, LEAST_JOBS)
    shown = jobs if len(jobs) <= room else jobs[: room - 1]
    more = len(jobs) - len(shown)
    return [
        *lines, "", *render_table(shown, columns, now_s),
        *([f"... and {more} more: ramherd jobs"] if more else []),
    ]  # fmt: skip


def describe(status: Mapping[str, Any], now_s: float) -> Iterator[tuple[str, str]]:
    yield "service", render_service(status["service"], now_s)
    yield "memory", render_budget(status)
    yield "jobs", render_counts(status["open_jobs"]) or "none are open"
    if status["paused"]:
        ago = render_paused(status["paused_s"] or 0.0, now_s).removeprefix("paused ")
        yield "paused", f"{ago}; no job starts until `ramherd resume`"
    elif status["waits_for"] is not None:
        yield "next", render_wait(reason_from_json(status["waits_for"]), None, now_s)
    for limit in status["limits"]:
        yield "limit", render_reason(reason_from_json(limit))
    if status["sessions"]:
        yield "sessions", render_hooked(status["sessions"])
    for warning in status["warnings"]:
        yield "warning", warning


def render_service(service: Mapping[str, Any] | None, now_s: float) -> str:
    if service is None:
        return "not running (ramherd up)"
    up = render_span(now_s - service["started_s"]) if service["started_s"] else "a moment"
    stops = ", stops" if service["draining"] else ""
    return f"up for {up} (pid {service['pid']}, pen {service['pen']}){stops}"


def render_budget(status: Mapping[str, Any]) -> str:
    """`1.2 GiB used of the 9.6 GiB budget; machine has 14 GiB free`."""
    used, budget = format_size(status["used_bytes"]), format_size(status["budget_bytes"])
    free = format_size(status["available_bytes"])
    level = "" if status["level"] == "calm" else f", level {status['level']}"
    return f"{used} used of the {budget} budget{level}; machine has {free} free"


def render_hooked(sessions: Sequence[Mapping[str, Any]]) -> str:
    running = sum(one["running"] for one in sessions)
    waiting = sum(len(one["waiting"]) for one in sessions)
    used = format_size(sum(one["used_bytes"] for one in sessions))
    return (
        f"{count(len(sessions), 'hooked session')}, {used}: "
        f"{count(running, 'subagent')} running, {waiting} waiting"
    )
