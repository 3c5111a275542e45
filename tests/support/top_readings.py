"""Fixed readings for `ramherd top`: a machine on which everything happens at once."""

import math
from collections.abc import Mapping
from typing import Any

from ramherd.client.shapes import UNKNOWN_JOB
from ramherd.core.procid import Process, ProcId
from ramherd.core.reasons import Reason, Why
from ramherd.core.units import GIB, MIB
from ramherd.decide.usage_limits import UsageWindow
from ramherd.store.recent_jobs import NamedEvent
from ramherd.store.subagent_slots import RunningSubagent, SessionState, SubagentRecord, WaiterRow
from ramherd.strays.nouns import Evidence, Fact, Kind, PsRow, Verdict
from ramherd.top.reading import Job, ProcessReading, Reading, ServiceReading, split_memory
from ramherd.top.source import TopSource

NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
BOOT_S = 500_000.0
HERD, OTHER_HERD = "01K5N1T3HERD00000000A7QX2M", "01K5N1T3HERD00000000B9RZ4T"


def make_job(number: int, name: str, state: str = "running", **changes: Any) -> dict[str, Any]:
    began = {"started_s": NOW - 60.0 * number, "updated_s": NOW - 60.0 * number}
    reason = {"why": "submitted"}
    return {
        **UNKNOWN_JOB, "id": f"JOB{number:023}", "number": number, "name": name, "herd": HERD,
        "state": state, "reason": reason, "attempts": 1, **began, **changes,
    }  # fmt: skip


def reason_json(why: Why, **numbers: Any) -> Mapping[str, Any]:
    return Reason(why, **numbers).as_json()


def make_live() -> tuple[Job, ...]:
    tools = ("turn 3 Bash", "turn 1", "turn 7 Edit", "turn 2 Read", "turn 12 Bash", "turn 5 Grep")
    names = (
        "fix-lint", "write-tests", "port-to-v2", "docs", "flaky-test", "upgrade-deps", "profile",
        "i18n", "dark-mode", "search-index", "retry-logic", "api-client",
    )  # fmt: skip
    jobs = [
        make_job(
            at, name, used_bytes=(180 + 37 * at % 400) * MIB,
            grant_bytes=(230 + 37 * at % 400) * MIB,
            cost_usd=0.07 * at, doing=tools[at % len(tools)], turns=at, model="opus",
            limit_bytes=2 * GIB, leak_bytes_per_s=0.0, held_s=None,
            herd=HERD if at % 4 else OTHER_HERD,
        )
        for at, name in enumerate(names, 11)
    ]  # fmt: skip
    jobs[2] |= {"used_bytes": 1900 * MIB, "grant_bytes": 1950 * MIB, "leak_bytes_per_s": 400_000.0}
    jobs[4] |= {"state": "held", "held_s": 3.2, "doing": "turn 12 Bash"}
    jobs[6] |= {"wish": "cancel"}
    return tuple(jobs)


def make_samples(live: tuple[Job, ...]) -> dict[str, tuple[int, ...]]:
    """Waves, a leak, and steady ones."""
    return {
        job["id"]: tuple(
            int(job["used_bytes"] * (0.55 + 0.45 * abs(math.sin(second / (9 + at % 5) + at))))
            if at % 3
            else int(job["used_bytes"] * (0.7 + 0.3 * second / 59))
            for second in range(60)
        )
        for at, job in enumerate(live)
    }


def make_waiting() -> tuple[Job, ...]:
    used, lease = 11 * GIB, 11 * GIB + 90 * MIB
    room = reason_json(Why.NO_ROOM_LEASE, need_bytes=412 * MIB, used_bytes=used, lease_bytes=lease)
    limit = reason_json(
        Why.USAGE_LIMIT, agent="claude", window="five hours", what="", until_at=NOW + 4000
    )
    conflict = reason_json(
        Why.MERGE_CONFLICT, ours="fix-lint", theirs="docs", files="README.md",
        merge="git -C /repo/.worktrees/fix-lint merge docs", retry="ramherd retry release",
    )  # fmt: skip
    paused = reason_json(Why.JOB_PAUSED, paused_at=NOW - 300)
    return (
        make_waiter(31, "cleanup", room),
        make_waiter(32, "bench", reason_json(Why.BEHIND, first="cleanup"), priority=5),
        make_waiter(33, "nightly", limit),
        make_waiter(34, "later", paused, paused_s=NOW - 300),
        make_waiter(35, "release", conflict, state="waiting"),
        make_waiter(36, "announce", reason_json(Why.AFTER, jobs="release"), state="waiting"),
    )


def make_waiter(number: int, name: str, reason: Mapping[str, Any], **changes: Any) -> Job:
    return make_job(
        number, name, **{"state": "queued", "started_s": None, **changes, "reason": reason}
    )


def make_ended() -> tuple[Job, ...]:
    exited = reason_json(Why.EXITED, code=2)
    done = {"reason": reason_json(Why.EXITED, code=0), "ended_s": NOW - 100, "exit_code": 0}
    denied = [
        {"tool": "Bash", "what": "npm test", "allow": "Bash(npm test)"},
        {"tool": "WebFetch", "what": "https://example.org", "allow": "WebFetch"},
    ]
    return (
        make_job(5, "migrate-db", "failed", reason=exited, error="no such table: users",
                 ended_s=NOW - 200, exit_code=2, peak_bytes=512 * MIB, cost_usd=1.12, turns=9),
        make_job(6, "rename-api", "done", **done, turns=14, cost_usd=0.84, peak_bytes=390 * MIB,
                 result="Renamed 14 functions; all tests pass.", files_changed=9, lines_added=214,
                 lines_removed=180, branch="ramherd/rename-api"),
        make_job(7, "add-tests", "done", **done, turns=6, cost_usd=0.31, peak_bytes=288 * MIB,
                 result="Wrote the tests, but could not run them.", denied=denied,
                 files_changed=3, lines_added=120, lines_removed=2, branch="ramherd/add-tests"),
        make_job(8, "lint", "done", **done, peak_bytes=44 * MIB),
        make_job(9, "old-idea", "cancelled", reason=reason_json(Why.ASKED, by="ramherd cancel 9"),
                 ended_s=NOW - 150, peak_bytes=61 * MIB),
    )  # fmt: skip


def make_row(
    pid: int, software: str, kind: Kind, verdict: Verdict, memory_mib: int, **changes: Any
) -> PsRow:
    process = Process(ProcId(pid, pid * 10), software[:15], "S", 1, pid, pid, uid=1000)
    row = PsRow(
        process=process, software=software, kind=kind, verdict=verdict, evidence=(), spared=(),
        session=0, application="", memory_bytes=memory_mib * MIB, age_s=8000.0, idle_s=None,
        growth_bytes=None, orphan_s=None, command=f"node /opt/{software}/index.js",
    )  # fmt: skip
    return row._replace(**changes)


def make_processes() -> tuple[PsRow, ...]:
    gone = (Evidence(Fact.STDIN_GONE), Evidence(Fact.REPARENTED, "init", 1))
    idle = (Evidence(Fact.IDLE, number=10_800), Evidence(Fact.DUPLICATE, number=4470))
    return (
        make_row(4100, "claude", Kind.AGENT, Verdict.LIVE, 640, session=4100, application="tmux"),
        make_row(5200, "codex", Kind.AGENT, Verdict.IDLE, 210, session=5200, idle_s=2400.0,
                 application="vscode"),
        make_row(4470, "server-memory", Kind.MCP, Verdict.LIVE, 71, session=4100),
        make_row(4471, "server-memory", Kind.MCP, Verdict.SUSPECT, 68, evidence=idle,
                 idle_s=10_800.0),
        make_row(4480, "playwright-mcp", Kind.MCP, Verdict.LIVE, 190, session=5200),
        make_row(3300, "playwright-mcp", Kind.MCP, Verdict.ORPHAN, 233, evidence=gone,
                 orphan_s=NOW - 900),
        make_row(3301, "chromium", Kind.BROWSER, Verdict.ORPHAN, 412,
                 evidence=(Evidence(Fact.CHILD_OF_ORPHAN, "playwright-mcp", 3300),)),
    )  # fmt: skip


def make_sessions() -> tuple[SessionState, ...]:
    reason = Reason(
        Why.NO_ROOM_LEASE, need_bytes=300 * MIB, used_bytes=9 * GIB, lease_bytes=9 * GIB
    )
    waiter = WaiterRow("owner", "call-9", BOOT_S - 12, BOOT_S + 5, 300 * MIB, reason)
    return (SessionState(4100, 1450 * MIB, 1700 * MIB, 2, [(waiter, 1)]),)


def make_events(live: tuple[Job, ...]) -> tuple[NamedEvent, ...]:
    rows = [
        ("run_started", live[0], Reason(Why.FITS, need_bytes=205 * MIB, have_bytes=3 * GIB)),
        ("run_held", live[4], Reason(Why.AT_GRANT, grant_bytes=300 * MIB, free_bytes=9 * MIB)),
        ("alert", live[1], Reason(Why.STALLED, silent_s=640.0, doing="in turn 1")),
        ("alert", live[2], Reason(Why.LEAK, slope_bytes=24 * MIB, left_s=410.0)),
        ("job_done", make_ended()[1], Reason(Why.EXITED, code=0)),
        ("job_failed", make_ended()[0], Reason(Why.EXITED, code=2)),
    ]
    return tuple(
        NamedEvent(at, NOW - 100 + 12 * at, kind, HERD, job["id"], "RUN", reason.as_text(),
                   job["name"], job["number"])
        for at, (kind, job, reason) in enumerate(rows, 1)
    )  # fmt: skip


def make_snapshot() -> Mapping[str, Any]:
    return {
        "at_s": NOW, "started_s": NOW - 7300, "level": "tight", "draining": False, "pid": 812,
        "pen": "cgroup2", "runs": (),
    }  # fmt: skip


def make_reading(**changes: Any) -> Reading:
    live = make_live()
    values: dict[str, Any] = {
        "at_s": NOW, "boot_s": BOOT_S,
        "memory": split_memory(
            24 * GIB, 9 * GIB, 3 * GIB, used_bytes=9 * GIB, granted_bytes=11 * GIB,
            budget_share=0.8, budget_bytes=12 * GIB,
        ),
        "service": ServiceReading(make_snapshot()),
        "live": live, "waiting": make_waiting(), "ended": make_ended(),
        "counts": {"queued": 44, "waiting": 2, "failed": 1, "done": 3, "cancelled": 1},
        "samples": make_samples(live),
        "windows": (UsageWindow("claude", "me", "", "five_hour", "", NOW + 4000),),
        "sessions": make_sessions(),
        "subagents": (
            RunningSubagent(4100, "a1", "Explore", BOOT_S - 75, 900 * MIB, 260 * MIB),
            RunningSubagent(4100, "a2", "general-purpose", BOOT_S - 31, 1130 * MIB, 180 * MIB),
        ),
        "ended_subagents": (
            SubagentRecord(
                NOW - 300, "s", "a0", "Plan", "/home/me/shop", 95.0, 700 * MIB, 910 * MIB, 240 * MIB
            ),
        ),
        "processes": ProcessReading(NOW - 4, make_processes()),
        "events": make_events(live),
    }  # fmt: skip
    return Reading(**{**values, **changes})


def make_empty_reading() -> Reading:
    memory = split_memory(
        16 * GIB, 12 * GIB, 7 * GIB, used_bytes=0, granted_bytes=0, budget_share=0.8,
        budget_bytes=8 * GIB,
    )  # fmt: skip
    return Reading(at_s=NOW, boot_s=BOOT_S, memory=memory)


class FixedSource(TopSource):
    """Gives the same reading until the test sets another one."""

    def __init__(self, reading: Reading | None = None) -> None:  # nothing is opened
        self.reading = reading or make_reading()
        self.reads = self.scans = 0

    def read(self) -> Reading:
        self.reads += 1
        return self.reading

    def scan_soon(self) -> None:
        self.scans += 1

    def close(self) -> None:
        pass
