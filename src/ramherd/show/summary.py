"""The last words of a herd, as text."""

from collections import Counter
from typing import Any

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import MIB, format_duration, format_size
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import render_footer, render_results, render_total_cost, state_of

# Smaller differences of the machine's available memory come and go by themselves.
WORTH_SAYING_BYTES = 64 * MIB
OPEN = ("running", "held", "queued", "waiting", "lost")


def render_summary(summary: dict[str, Any], missing_bytes: int, width: int = 80) -> list[str]:
    results = summary["results"]
    return [
        *render_results(results, width),
        f"{render_counts(summary)} in {format_duration(summary['wall_s'])}; "
        f"{render_cost_of_all(results)}"
        f"peak {format_size(summary['peak_bytes'])} of {format_size(summary['budget_bytes'])}; "
        f"pen {summary['pen']}",
        f"{summary['oom_kills']} OOM kills, {summary['limit_kills']} limit kills, "
        f"{summary['preempted']} preempted, {summary['recycled']} recycled, "
        f"{summary['leftovers_ended']} leftovers ended; "
        f"supervisor {format_size(summary['supervisor']['rss_peak_bytes'])}, "
        f"keeper {format_size(summary['supervisor']['keeper_rss_peak_bytes'])}",
        *render_ramp(summary.get("ramp")),
        *(render_reason(reason_from_json(limit)) for limit in summary.get("limits", ())),
        *render_remains(summary["residue_bytes"], missing_bytes),
        *render_store_error(summary.get("store_error")),
        *render_footer(results, width),
    ]


def render_herd(summary: dict[str, Any], width: int = 80, *, every: bool = False) -> list[str]:
    """The same without what is known to the ramherd that ran it only: of a herd of the service, or
    of one that has not ended.
    """
    results = summary["results"]
    return [
        *render_results(results, width, every=every),
        f"{render_counts(summary)} in {format_duration(summary['wall_s'])}; "
        f"{render_cost_of_all(results)}"
        f"{render_peak(summary)}herd {summary['herd']}",
        *render_footer(results, width),
    ]


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
    clean = f"{ramp['clean']} at a time ran without trouble" if ramp["clean"] else "no step ended"
    if ramp["trouble"] is None:
        return [f"ramp: {clean}"]
    return [f"ramp: {clean}; then: {reason_text(ramp['trouble'])}"]


def render_rest(summary: dict[str, Any]) -> str:
    """How many are not done; of those that are, how many were denied something."""
    states = Counter(state_of(result) for result in summary["results"])
    open_ = (state for state in OPEN if states[state])
    parts = [f"{summary[state]} {state}" for state in ("failed", "cancelled") if summary[state]]
    parts += [f"{states[state]} {state}" for state in open_]
    denied = sum(bool(result.get("denied")) for result in summary["results"])
    parts += [f"{denied} with denied tool calls"] if denied else []
    return f" ({', '.join(parts)})" if parts else ""


def reason_text(reason: dict[str, Any]) -> str:
    return render_reason(reason_from_json(reason))


def render_remains(residue_bytes: int, missing_bytes: int) -> list[str]:
    lines = []
    if residue_bytes > 0:
        lines.append(f"runs left {format_size(residue_bytes)} in tmpfs (see /dev/shm and /tmp)")
    if missing_bytes >= WORTH_SAYING_BYTES:
        missing = format_size(missing_bytes)
        lines.append(f"the machine has {missing} less available than before, whoever holds it")
    return lines
