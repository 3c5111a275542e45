"""The responses of the service, typed. Fields of a newer service are ignored; fields that an older
service does not have get the defaults in this file.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NotRequired, TypedDict, cast

from ramherd.core.agent_task import SAID
from ramherd.core.reasons import Why
from ramherd.core.service_status import RunStatus, ServiceStatus


class RunInfo(TypedDict):
    run: str
    attempt: int
    started_s: float
    ended_s: float | None
    end: str | None
    exit_code: int | None
    signal: int | None
    reason: dict[str, Any] | None
    peak_bytes: int | None
    held_s: float | None


class JobInfo(TypedDict):
    id: str
    number: int | None
    herd: str
    name: str
    state: str
    reason: dict[str, Any]
    attempts: int
    failures: int
    priority: int
    updated_s: float
    wish: str | None
    label: str
    owner_lost: bool
    paused_s: float | None
    not_before_s: float | None
    started_s: float | None
    ended_s: float | None
    exit_code: int | None
    signal: int | None
    peak_bytes: int | None
    used_bytes: int | None
    session: str | None
    turns: int | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    cost_is_estimate: bool | None
    result: str | None
    model: str | None
    worktree: str | None
    branch: str | None
    files_changed: int | None
    lines_added: int | None
    lines_removed: int | None
    denied: list[dict[str, str]] | None
    error: str | None
    resume: str | None
    left_out: list[dict[str, str]] | None
    worktree_note: str | None
    fallback: dict[str, Any] | None
    merged_into: str | None
    runs: NotRequired[list[RunInfo]]


class HerdInfo(TypedDict):
    herd: str
    created_s: float
    ended_s: float | None
    service: bool
    owner_lost: bool
    counts: dict[str, int]
    summary: NotRequired[dict[str, Any] | None]


class EventInfo(TypedDict):
    v: int
    seq: int
    at_s: float
    kind: str
    herd: str
    job: str
    run: str
    node: str
    reason: dict[str, Any]


UNKNOWN_REASON = {"why": Why.UNKNOWN.value, "name": "?"}
UNKNOWN_RUN = {
    "attempt": 0, "started_s": 0.0, "ended_s": None, "end": None, "exit_code": None, "signal": None,
    "reason": None, "peak_bytes": None, "held_s": None,
}  # fmt: skip
UNKNOWN_JOB = {
    "number": None, "herd": "", "reason": UNKNOWN_REASON, "attempts": 0, "failures": 0,
    "priority": 0, "updated_s": 0.0, "wish": None, "label": "", "owner_lost": False,
    **dict.fromkeys(
        ("paused_s", "not_before_s", "started_s", "ended_s", "exit_code", "signal", "peak_bytes",
         "used_bytes", *SAID)
    ),
}  # fmt: skip
UNKNOWN_HERD: dict[str, Any] = {
    "created_s": 0.0,
    "ended_s": None,
    "service": True,
    "owner_lost": False,
    "counts": {},
}
UNKNOWN_EVENT = {
    "v": 1, "at_s": 0.0, "herd": "", "job": "", "run": "", "node": "", "reason": UNKNOWN_REASON,
}  # fmt: skip
UNKNOWN_LIVE_RUN = asdict(RunStatus("", "", "", 0, 0, 0, 0, 0.0))


def complete_job(value: Mapping[str, Any]) -> JobInfo:
    """A KeyError names a missing required field."""
    need(value, "id", "name", "state")
    job = {**UNKNOWN_JOB, **value}
    if "runs" in value:
        job["runs"] = [complete_run(run) for run in value["runs"]]
    return cast("JobInfo", job)


def complete_run(value: Mapping[str, Any]) -> RunInfo:
    need(value, "run")
    return cast("RunInfo", {**UNKNOWN_RUN, **value})


def complete_herd(value: Mapping[str, Any]) -> HerdInfo:
    need(value, "herd")
    return cast("HerdInfo", {**UNKNOWN_HERD, **value})


def complete_event(value: Mapping[str, Any]) -> EventInfo:
    need(value, "seq", "kind")
    return cast("EventInfo", {**UNKNOWN_EVENT, **value})


def complete_snapshot(value: Mapping[str, Any]) -> dict[str, Any]:
    runs = [{**UNKNOWN_LIVE_RUN, **run} for run in value.get("runs", ())]
    unknown = {**ServiceStatus().as_json(), "jobs": {}, "paused": False, "paused_s": None}
    return {**unknown, **value, "runs": runs}


def need(value: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name not in value:
            raise KeyError(name)
