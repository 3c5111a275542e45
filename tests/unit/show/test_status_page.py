"""The page of `ramherd status`, at several sizes of the screen."""

import time
from typing import Any

import pytest

from ramherd.core.units import GIB, MIB
from ramherd.show.status_page import render_status

SERVICE = {"pid": 7, "version": "1", "started_s": 0.0, "pen": "cgroup2", "draining": False}


def job(number: int, state: str = "queued") -> dict[str, Any]:
    return {
        "number": number, "name": f"job-{number}", "state": state, "herd": "01AAAA5K2Q9X",
        "reason": {"why": "submitted"}, "updated_s": time.time(), "attempts": 1, "wish": None,
    }  # fmt: skip


def status(**changes: Any) -> dict[str, Any]:
    return {
        "service": None, "budget_bytes": 17.5 * GIB, "leased_bytes": GIB, "used_bytes": 384 * MIB,
        "available_bytes": 22.2 * GIB, "total_bytes": 23.5 * GIB, "level": "calm", "paused": False,
        "paused_s": None, "jobs": {}, "limits": [], "waits_for": None, "warnings": [],
        "sessions": [], "open_jobs": [], **changes,
    }  # fmt: skip


def test_without_jobs_it_has_three_lines() -> None:
    """What a `ramherd run` that starts now would find."""
    assert render_status(status(), 80, 24) == [
        "service  not running (ramherd up)",
        "memory   384 MiB used of the 17.5 GiB budget; machine has 22.2 GiB free",
        "jobs     none are open",
    ]


def test_all_that_a_user_has_to_know_is_there() -> None:
    """A pause with its end, limits, hooked sessions, and warnings."""
    sessions = [{"pid": 1, "used_bytes": GIB, "running": 1, "waiting": [{}, {}]}]
    found = status(
        service={**SERVICE, "started_s": time.time() - 7200}, level="tight", paused=True,
        paused_s=time.time() - 180, sessions=sessions, warnings=["the disk is full"],
        limits=[{"why": "usage_limit", "agent": "claude", "window": "five-hour window"}],
    )  # fmt: skip
    lines = render_status(found, 120, 40)

    assert lines[0] == "service  up for 2 h (pid 7, pen cgroup2)"
    assert "budget, level tight; machine has" in lines[1]
    assert lines[3] == "paused   by you 3 min ago; no job starts until `ramherd resume`"
    assert lines[4].startswith("limit    claude")
    assert lines[5] == "sessions 1 hooked session, 1 GiB: 1 subagent running, 2 waiting"
    assert lines[6] == "warning  the disk is full"


def test_the_first_in_line_has_its_reason() -> None:
    """Unless everything is paused."""
    wait = {"why": "no_room_lease", "need_bytes": 300 * MIB, "used_bytes": 0, "lease_bytes": MIB}
    lines = render_status(status(waits_for=wait), 80, 24)

    assert "next     memory: needs 300 MiB, 1 MiB free" in lines


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (40, 10)])
def test_it_fits_the_screen(columns: int, rows: int) -> None:
    """Running jobs first; those that have ended are not listed."""
    jobs = [job(number) for number in range(60)] + [job(99, "running"), job(98, "done")]
    lines = render_status(status(open_jobs=jobs), columns, rows)

    assert len(lines) < rows
    assert max(map(len, lines)) <= columns
    header = next(at for at, line in enumerate(lines) if line.startswith("NO  NAME"))
    assert lines[header + 1].split()[:3] == ["99", "job-99", "running"]
    assert lines[-1].startswith("... and ")
    assert "job-98" not in "".join(lines)
