"""The last words of a herd, as text."""

from typing import Any

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import MIB, format_duration, format_size
from ramherd.decide.job_bases import BLOCKED
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason

# Smaller differences of the machine's available memory come and go by themselves.
WORTH_SAYING_BYTES = 64 * MIB
SHOWN = 10


def render_summary(summary: dict[str, Any], missing_bytes: int) -> list[str]:
    return [
        *render_failures(summary["results"]),
        *render_blocked(summary["results"]),
        f"{summary['done']} of {summary['jobs']} jobs done{render_rest(summary)} "
        f"in {format_duration(summary['wall_s'])}; "
        f"peak {format_size(summary['peak_bytes'])} of {format_size(summary['budget_bytes'])}; "
        f"pen {summary['pen']}",
        f"{summary['oom_kills']} OOM kills, {summary['limit_kills']} limit kills, "
        f"{summary['preempted']} preempted, {summary['recycled']} recycled, "
        f"{summary['leftovers_ended']} leftovers ended; "
        f"supervisor {format_size(summary['supervisor']['rss_peak_bytes'])}, "
        f"keeper {format_size(summary['supervisor']['keeper_rss_peak_bytes'])}",
        *render_ramp(summary.get("ramp")),
        *render_remains(summary["residue_bytes"], missing_bytes),
        *render_store_error(summary.get("store_error")),
    ]


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
    """Jobs that are not done. Those that have not ended wait for their user."""
    counts = {state: summary[state] for state in ("failed", "cancelled")}
    waiting = summary["jobs"] - summary["done"] - sum(counts.values())
    parts = [f"{n} {state}" for state, n in {**counts, "waiting": waiting}.items() if n]
    return f" ({', '.join(parts)})" if parts else ""


def render_failures(results: list[dict[str, Any]]) -> list[str]:
    bad = [result for result in results if result["state"] == "failed"]
    lines = [
        printable(f"failed {result['job']}: {reason_text(result['reason'])}")
        for result in bad[:SHOWN]
    ]
    if len(bad) > SHOWN:
        lines.append(f"and {len(bad) - SHOWN} more failed")
    if any(result["runs"] for result in bad):
        name = next(result["job"] for result in bad if result["runs"])
        lines.append(f"what it printed: ramherd logs {name!r}")
    return lines


def render_blocked(results: list[dict[str, Any]]) -> list[str]:
    """Jobs that wait for their user, with what to do; not those that only wait for them."""
    blocked = [
        result
        for result in results
        if result["state"] == "waiting" and result["reason"]["why"] in BLOCKED
    ]
    lines = [
        printable(f"waiting {result['job']}: {reason_text(result['reason'])}")
        for result in blocked[:SHOWN]
    ]
    return lines + [f"and {len(blocked) - SHOWN} more waiting"] * (len(blocked) > SHOWN)


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
