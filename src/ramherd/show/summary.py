"""The summary of a herd, as text."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import MIB, count, format_duration, format_size
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import (
    render_footer,
    render_more,
    render_results,
    render_total_cost,
    state_of,
)

# Smaller changes of the machine's available memory are normal.
WORTH_SAYING_BYTES = 64 * MIB
COUNTS = {
    "preempted": "preempted",
    "recycled": "recycled",
    "leftovers_ended": "leftovers ended",
    "limit_kills": "limit kills",
    "oom_kills": "OOM kills",
    "level_changes": "level changes",
}
OPEN = ("running", "held", "queued", "waiting", "lost")


def render_summary(
    summary: dict[str, Any], missing_bytes: int, width: int = 80, *, is_verbose: bool = False
) -> list[str]:
    """The results of the jobs, their cost, and where the rest is. With `is_verbose` also ramherd's
    actions on memory, and its own cost.
    """
    results = summary["results"]
    return [
        *render_results(results, width),
        f"{render_counts(summary)} in {format_duration(summary['wall_s'])}; "
        f"{render_cost_of_all(results)}"
        f"peak {format_size(summary['peak_bytes'])} of {format_size(summary['budget_bytes'])}",
        *render_kills(summary),
        *render_residue(summary["residue_bytes"], is_verbose=is_verbose),
        *(render_footprint(summary, missing_bytes) if is_verbose else ()),
        *render_ramp(summary.get("ramp")),
        *(render_reason(reason_from_json(limit)) for limit in summary.get("limits", ())),
        *render_store_error(summary.get("store_error")),
        *render_more(results),
        *render_footer(results, width),
    ]


def render_herd(
    summary: dict[str, Any], width: int = 80, *, every: bool = False, is_verbose: bool = False
) -> list[str]:
    """The same for a herd of the service, or one that has not ended: some values are unknown."""
    results = summary["results"]
    return [
        *render_results(results, width, every=every),
        f"{render_counts(summary)} in {format_duration(summary['wall_s'])}; "
        f"{render_cost_of_all(results)}"
        f"{render_peak(summary)}herd {summary['herd']}",
        *render_kills(summary),
        *(render_footprint(summary) if is_verbose and summary.get("supervisor") else ()),
        *([] if every else render_more(results)),
        *render_footer(results, width),
    ]


def render_kills(summary: dict[str, Any]) -> Iterator[str]:
    """Processes that the kernel killed, if any."""
    for name, why in (
        ("limit_kills", "at the memory_limit of a job"),
        ("oom_kills", "because memory ran out"),
    ):
        if number := summary.get(name):
            yield f"{count(number, 'process', 'processes')} killed {why}"


def render_footprint(summary: dict[str, Any], missing_bytes: int = 0) -> Iterator[str]:
    ours = summary["supervisor"]
    yield ", ".join(f"{summary.get(name) or 0} {what}" for name, what in COUNTS.items())
    yield (
        f"pen {summary['pen']}; supervisor {format_size(ours['rss_peak_bytes'])} and "
        f"{format_duration(ours['cpu_s'])} of CPU, "
        f"keeper {format_size(ours['keeper_rss_peak_bytes'])}"
    )
    if missing_bytes >= WORTH_SAYING_BYTES:
        missing = format_size(missing_bytes)
        yield f"the machine has {missing} less available than before the herd"


def render_residue(residue_bytes: int, *, is_verbose: bool) -> Iterator[str]:
    """Files in memory that jobs left."""
    if residue_bytes >= (1 if is_verbose else WORTH_SAYING_BYTES):
        yield f"jobs left {format_size(residue_bytes)} in tmpfs (see /dev/shm and /tmp)"


def render_counts(summary: dict[str, Any]) -> str:
    jobs = "job" if summary["jobs"] == 1 else "jobs"
    return f"{summary['done']} of {summary['jobs']} {jobs} done{render_rest(summary)}"


def render_cost_of_all(results: list[dict[str, Any]]) -> str:
    cost = render_total_cost(results)
    return f"{cost}; " if cost else ""


def render_peak(summary: dict[str, Any]) -> str:
    peak = summary.get("peak_bytes")
    return f"peak {format_size(peak)}; " if peak else ""


def render_store_error(why: str | None) -> list[str]:
    return [] if why is None else [f"these results are not in the store: {why}"]


def render_ramp(ramp: dict[str, Any] | None) -> list[str]:
    if ramp is None:
        return []
    clean = f"{ramp['clean']} at a time ran without trouble" if ramp["clean"] else ""
    trouble = reason_text(ramp["trouble"]) if ramp["trouble"] is not None else ""
    if clean and trouble:
        return [f"ramp: {clean}; first trouble with more: {trouble}"]
    if trouble:
        return [f"ramp: first trouble: {trouble}"]
    return [f"ramp: {clean or 'the herd ended during the first step'}"]


def render_rest(summary: dict[str, Any]) -> str:
    """How many jobs are not done, and how many of the done jobs were denied a tool."""
    states = Counter(state_of(result) for result in summary["results"])
    open_ = (state for state in OPEN if states[state])
    parts = [f"{summary[state]} {state}" for state in ("failed", "cancelled") if summary[state]]
    parts += [f"{states[state]} {state}" for state in open_]
    denied = sum(bool(result.get("denied")) for result in summary["results"])
    parts += [f"{denied} with denied tool calls"] if denied else []
    return f" ({', '.join(parts)})" if parts else ""


def reason_text(reason: dict[str, Any]) -> str:
    return render_reason(reason_from_json(reason))
