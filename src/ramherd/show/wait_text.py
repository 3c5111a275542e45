"""A few words for each job of a table: the cause of its wait, its current action, or its end.

`show/reasons.py` has the whole sentences, which are used for reasons without a short text here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ramherd.core.reasons import JobState, Reason, Why, reason_from_json
from ramherd.core.units import format_size
from ramherd.show.cost_text import render_cost
from ramherd.show.reasons import render_clock, render_reason

Job = Mapping[str, Any]
# Reasons for which a job entered the queue: nothing keeps it there.
NEXT = (
    Why.SUBMITTED, Why.DEPENDENCY_DONE, Why.ASKED, Why.ALLOWED, Why.CONTINUED, Why.SERVICE_STOPS,
    Why.ADOPTED,
)  # fmt: skip


def render_details(job: Job, now_s: float) -> str:
    """The details of a job at a glance."""
    state, reason = JobState(job["state"]), reason_from_json(job["reason"])
    if reason.why is Why.OWNER_LOST:
        return "its ramherd died (ramherd run --resume)"
    if job.get("wish"):
        return f"{job['wish']} requested"
    if state in (JobState.QUEUED, JobState.WAITING):
        return render_wait(reason, job.get("not_before_s"), now_s)
    if state.is_final:
        return render_end(job, reason)
    return render_work(job)


def render_wait(reason: Reason, not_before_s: float | None, now_s: float) -> str:
    """`memory: needs 300 MiB, 120 MiB free`."""
    if reason.why in NEXT:
        return "next in line"
    if (render := TIMED.get(reason.why)) is not None:
        return render(reason, not_before_s, now_s)
    text = SHORT.get(reason.why)
    if text is None:
        return render_reason(reason)
    percent = {"percent": round(100 * number(reason, "pressure"))}
    return text.format_map({**dict.fromkeys(NAMES, "?"), **reason.numbers, **percent})


def render_pause(reason: Reason, _not_before_s: float | None, now_s: float) -> str:
    return render_paused(number(reason, "paused_at"), now_s)


def render_paused(paused_s: float, now_s: float) -> str:
    return f"paused by you {render_span(now_s - paused_s)} ago" if paused_s else "paused by you"


def render_delay(reason: Reason, not_before_s: float | None, now_s: float) -> str:
    what = "retry" if reason.why is Why.RETRY else "API busy: retry"
    if not_before_s is None or not_before_s <= now_s:
        return f"{what} next"
    return f"{what} in {render_span(not_before_s - now_s)}"


def render_limit(reason: Reason, _not_before_s: float | None, now_s: float) -> str:
    until_s = number(reason, "until_at")
    return f"usage limit until {render_clock(until_s, now_s)}" if until_s else "usage limit"


def render_room(reason: Reason, _not_before_s: float | None, _now_s: float) -> str:
    free = number(reason, "have_bytes")
    if reason.why is Why.NO_ROOM_LEASE:
        free = max(number(reason, "lease_bytes") - number(reason, "used_bytes"), 0)
    return f"memory: needs {format_size(number(reason, 'need_bytes'))}, {format_size(free)} free"


TIMED: dict[Why, Callable[[Reason, float | None, float], str]] = {
    Why.PAUSED: render_pause,
    Why.JOB_PAUSED: render_pause,
    Why.RETRY: render_delay,
    Why.OVERLOAD: render_delay,
    Why.USAGE_LIMIT: render_limit,
    Why.NO_ROOM_LEASE: render_room,
    Why.NO_ROOM_BUDGET: render_room,
    Why.NO_ROOM_MACHINE: render_room,
}
NAMES = ("jobs", "first", "limit", "running", "level")
SHORT = {
    Why.AFTER: "after {jobs}",
    Why.BEHIND: "behind {first}",
    Why.NO_SERVICE: "no service (ramherd up)",
    Why.MAX_PARALLEL: "max_parallel {limit} is reached",
    Why.RAMP: "ramp: {limit} at a time",
    Why.SOMEBODY_WAITS: "memory: running jobs first",
    Why.LEVEL: "memory: level is {level}",
    Why.CPU_PRESSURE: "CPU pressure is {percent} %",
    Why.STAGGER: "next: starts are spread",
    Why.STARTING: "next: starts are spread",
    Why.OVERLOAD_PACE: "API busy",
    Why.USAGE_PROBE: "usage limit: one job first",
    Why.MERGE_CONFLICT: "merge conflict (ramherd show)",
    Why.CANNOT_MERGE: "cannot merge (ramherd show)",
}


def render_work(job: Job) -> str:
    """`turn 3 Bash, $0.12`."""
    held_s = job.get("held_s")
    words = [
        f"held {render_span(held_s)}" if held_s is not None else "",
        f"run {job['attempts']}" if job["attempts"] > 1 else "",
        job.get("doing") or render_turns(job),
        render_cost(job),
    ]
    return ", ".join(filter(None, words))


def render_end(job: Job, reason: Reason) -> str:
    """The exit status of a command, or the usage of an agent; otherwise why there is none."""
    if job["state"] == JobState.DONE:
        denied = f"{len(job['denied'])} denied" if job.get("denied") else ""
        words = [render_turns(job), render_cost(job), denied]
        return ", ".join(filter(None, words)) or "exit 0"
    if reason.why is Why.EXITED:
        error = job.get("error")
        return f"exit {reason.numbers.get('code', '?')}" + (f": {error}" if error else "")
    return render_reason(reason)


def render_turns(job: Job) -> str:
    return {None: "", 0: "", 1: "1 turn"}.get(job.get("turns"), f"{job.get('turns')} turns")


def render_span(time_s: float) -> str:
    """`3 min`: a time in one unit, rounded."""
    whole = max(round(time_s), 0)
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= 2 * unit_s or whole == unit_s:
            return f"{whole // unit_s} {unit}"
    return f"{whole} s"


def number(reason: Reason, name: str) -> float:
    """0 if another version of ramherd does not give the number."""
    value = reason.numbers.get(name, 0)
    return float(value) if not isinstance(value, str) else 0.0
