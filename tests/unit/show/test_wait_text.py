"""The few words of a table that say what a job waits for, or how it ended."""

from typing import Any

import pytest

from ramherd.core.reasons import Reason, Why
from ramherd.core.units import MIB
from ramherd.show.wait_text import render_details, render_span

NOW_S = 1_000_000.0
WAITS = [
    (Reason(Why.SUBMITTED), "next in line"),
    (Reason(Why.SERVICE_STOPS), "next in line"),
    (Reason(Why.AFTER, jobs="delta, eta"), "after delta, eta"),
    (Reason(Why.BEHIND, first="delta"), "behind delta"),
    (
        Reason(Why.NO_ROOM_LEASE, need_bytes=300 * MIB, used_bytes=80 * MIB, lease_bytes=200 * MIB),
        "memory: needs 300 MiB, 120 MiB free",
    ),
    (
        Reason(Why.NO_ROOM_LEASE, need_bytes=300 * MIB, used_bytes=90 * MIB, lease_bytes=80 * MIB),
        "memory: needs 300 MiB, 0 B free",
    ),
    (
        Reason(Why.NO_ROOM_MACHINE, need_bytes=300 * MIB, have_bytes=MIB),
        "memory: needs 300 MiB, 1 MiB free",
    ),
    (Reason(Why.PAUSED, paused_at=NOW_S - 180), "paused by you 3 min ago"),
    (Reason(Why.PAUSED), "paused by you"),
    (Reason(Why.JOB_PAUSED, paused_at=NOW_S - 7200), "paused by you 2 h ago"),
    (Reason(Why.RETRY, delay_s=10.0), "retry in 8 s"),
    (Reason(Why.OVERLOAD, what="529"), "API busy: retry in 8 s"),
    (Reason(Why.USAGE_LIMIT, agent="claude"), "usage limit"),
    (Reason(Why.MAX_PARALLEL, running=4, limit=4), "max_parallel 4 is reached"),
    (Reason(Why.MAX_PARALLEL), "max_parallel ? is reached"),
    (Reason(Why.CPU_PRESSURE, pressure=0.934), "CPU pressure is 93 %"),
    (Reason(Why.STORE, what="the disk is full"), "the disk is full: "),
]


def job(state: str, reason: Reason, **changes: Any) -> dict[str, Any]:
    return {"state": state, "reason": reason.as_json(), "attempts": 1, "wish": None, **changes}


@pytest.mark.parametrize(("reason", "text"), WAITS, ids=lambda value: str(value)[:30])
def test_a_job_that_waits_has_the_current_reason(reason: Reason, text: str) -> None:
    """Short, with the numbers that matter; a reason of another version may have none."""
    assert render_details(job("queued", reason, not_before_s=NOW_S + 8), NOW_S).startswith(text)


def test_a_usage_limit_has_the_time_of_its_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the zone of this machine."""
    limit = Reason(Why.USAGE_LIMIT, agent="claude", until_at=NOW_S + 60)
    text = render_details(job("queued", limit), NOW_S)

    assert text.startswith("usage limit until ")
    assert text[-3] == ":"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"doing": "turn 3 Bash", "cost_usd": 0.12}, "turn 3 Bash, $0.12"),
        ({"held_s": 12.0, "attempts": 2}, "held 12 s, run 2"),
        ({"turns": 1}, "1 turn"),
        ({"turns": 4, "wish": "cancel"}, "cancel requested"),
        ({}, ""),
    ],
)
def test_a_job_that_runs_has_what_it_does(changes: dict[str, Any], text: str) -> None:
    """Not why it was started."""
    assert render_details(job("running", Reason(Why.FITS), **changes), NOW_S) == text


@pytest.mark.parametrize(
    ("state", "reason", "changes", "text"),
    [
        ("done", Reason(Why.EXITED, code=0), {}, "exit 0"),
        ("done", Reason(Why.SAID_DONE), {"turns": 2, "denied": [{}]}, "2 turns, 1 denied"),
        ("failed", Reason(Why.EXITED, code=3), {"error": "oops"}, "exit 3: oops"),
        ("failed", Reason(Why.EXITED, code=3), {}, "exit 3"),
        ("queued", Reason(Why.OWNER_LOST, pid=7), {}, "its ramherd died"),
    ],
)
def test_a_job_that_has_ended_has_its_exit_status(
    state: str, reason: Reason, changes: dict[str, Any], text: str
) -> None:
    """Of an agent, what it took."""
    assert render_details(job(state, reason, **changes), NOW_S).startswith(text)


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(0.2, "0 s"), (-3, "0 s"), (60, "1 min"), (119, "119 s"), (150, "2 min"), (7200, "2 h")],
)
def test_a_span_has_one_unit(time_s: float, text: str) -> None:
    """Nobody needs the seconds of an hour."""
    assert render_span(time_s) == text
