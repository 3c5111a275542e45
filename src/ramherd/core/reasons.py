"""The closed lists: the states of a job, the ends of a run, and the reasons of decisions."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

Number = int | float | str


class JobState(StrEnum):
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    HELD = "held"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class RunEnd(StrEnum):
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    PREEMPTED = "preempted"
    LIMIT_KILL = "limit_kill"
    OOM_KILL = "oom_kill"
    HEAP_EXHAUSTED = "heap_exhausted"
    LOST = "lost"
    CANCELLED = "cancelled"

    # Ends decided by the governor.
    RECYCLED = "recycled"


class Why(StrEnum):
    """The closed list of reasons. Each has its sentence in `show/reasons.py`."""

    SUBMITTED = "submitted"
    FITS = "fits"
    NO_ROOM_BUDGET = "no_room_budget"
    NO_ROOM_MACHINE = "no_room_machine"
    MAX_PARALLEL = "max_parallel"
    SUBAGENT_CAP = "subagent_cap"
    STARTING = "starting"
    TOO_BIG = "too_big"
    NO_WAIT = "no_wait"
    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    LIMIT_KILL = "limit_kill"
    OOM_KILL = "oom_kill"
    HEAP_EXHAUSTED = "heap_exhausted"
    NODE_ABORT = "node_abort"
    NOT_STARTED = "not_started"
    CANNOT_PREPARE = "cannot_prepare"
    RETRY = "retry"
    OVER_BUDGET = "over_budget"
    KEEPER_LOST = "keeper_lost"
    SUPERVISOR_LOST = "supervisor_lost"
    KEEPER_HANGS = "keeper_hangs"
    KEEPER_REPLACED = "keeper_replaced"
    KEEPER_FAILS = "keeper_fails"
    SUSPECTED = "suspected"
    SUSPECTS_FIRST = "suspects_first"
    KEEPER_ALONE = "keeper_alone"
    ENDS_KEEPER = "ends_keeper"
    OWNER_LOST = "owner_lost"
    DEPENDENCY_DONE = "dependency_done"
    DEPENDENCY_FAILED = "dependency_failed"
    INTERRUPTED = "interrupted"
    GRACE_OVER = "grace_over"
    LEFTOVERS = "leftovers"
    UNKILLABLE = "unkillable"
    CONTAINERS = "containers"
    RESIDUE = "residue"
    STORE = "store"
    NO_RUNTIME = "no_runtime"
    RUNTIME_RESTORED = "runtime_restored"
    STORE_RESTORED = "store_restored"
    LEDGER = "ledger"
    NO_LEASE = "no_lease"
    LEDGER_SET_ASIDE = "ledger_set_aside"
    LEASE_WITHOUT_OWNER = "lease_without_owner"
    DISK_FULL = "disk_full"
    BALLAST_RELEASED = "ballast_released"
    BALLAST_RESTORED = "ballast_restored"
    LOG_TOTAL = "log_total"
    LOGS_SMALLER = "logs_smaller"

    # Reasons about agents.
    SAID_DONE = "said_done"
    GAVE_UP = "gave_up"
    NO_RESULT = "no_result"
    DENIED = "denied"
    NO_GATEWAY = "no_gateway"
    LARGE_SERVER = "large_server"
    OVERLOAD = "overload"
    OVERLOAD_PACE = "overload_pace"
    API_CALM = "api_calm"
    USAGE_LIMIT = "usage_limit"
    USAGE_PROBE = "usage_probe"
    USAGE_SERVED = "usage_served"
    NEAR_USAGE_LIMIT = "near_usage_limit"
    NO_ACCESS = "no_access"
    LIMIT_FALLBACK = "limit_fallback"
    START_AT = "start_at"
    SESSION_LOST = "session_lost"
    COST = "cost"
    COST_SHARE = "cost_share"
    COST_LEFT = "cost_left"
    STEP_DOWN = "step_down"
    MERGE_CONFLICT = "merge_conflict"
    CANNOT_MERGE = "cannot_merge"
    HERD_STUCK = "herd_stuck"

    # Reasons about strays.
    ABANDONED = "abandoned"
    NAMED = "named"
    WARNING_SIGN = "warning_sign"

    # Reasons of the governor.
    GROWTH = "growth"
    IDLE_GRANT = "idle_grant"
    GIVES_ROOM = "gives_room"
    RECLAIM = "reclaim"
    PATIENCE_OVER = "patience_over"
    YOUNGEST_WAITS = "youngest_waits"
    HELD_TOO_LONG = "held_too_long"
    DEBT = "debt"
    OUTGREW_BUDGET = "outgrew_budget"
    SOMEBODY_WAITS = "somebody_waits"
    NO_ROOM_LEASE = "no_room_lease"
    STAGGER = "stagger"
    RAMP = "ramp"
    CACHE = "cache"
    AT_GRANT = "at_grant"
    LEVEL = "level"
    CALM = "calm"
    CPU_PRESSURE = "cpu_pressure"
    MEMORY_PRESSURE = "memory_pressure"
    SWAP_IN = "swap_in"
    FAILED_STARTS = "failed_starts"
    SMALL_BUDGET = "small_budget"
    LEAK = "leak"
    OVER_MARK = "over_mark"
    # Reasons of the service.
    ADOPTED = "adopted"
    ASKED = "asked"
    ALLOWED = "allowed"
    CONTINUED = "continued"
    ON_DONE_FAILED = "on_done_failed"
    STALLED = "stalled"
    HERD_OVER = "herd_over"
    NEAR_BUDGET = "near_budget"
    NEAR_LIMIT = "near_limit"
    PAUSED = "paused"
    JOB_PAUSED = "job_paused"
    EDITED = "edited"
    NO_SERVICE = "no_service"
    # Reasons of jobs that wait for other jobs.
    AFTER = "after"
    BEHIND = "behind"
    RESUMED = "resumed"
    SERVICE_STOPS = "service_stops"
    WARM = "warm"
    RETIRED = "retired"
    WARM_GONE = "warm_gone"
    # A reason stored by another version of ramherd that this version does not have.
    UNKNOWN = "unknown"


class Reason:
    """Why something was decided, with the numbers that were compared. Instances are never changed.
    This is a plain class because hooks create reasons too, and `dataclasses` takes 20 ms to import.
    """

    __slots__ = ("numbers", "why")

    def __init__(self, why: Why, /, **numbers: Number) -> None:
        self.why: Final = why
        self.numbers: Final[Mapping[str, Number]] = numbers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reason):
            return NotImplemented
        return (self.why, self.numbers) == (other.why, other.numbers)

    def __repr__(self) -> str:
        return f"Reason({', '.join([self.why, *(f'{k}={v!r}' for k, v in self.numbers.items())])})"

    __hash__ = None  # type: ignore[assignment]

    def as_json(self) -> dict[str, Number]:
        return {"why": self.why.value, **self.numbers}

    def as_text(self) -> str:
        """The form in which the store keeps it."""
        return json.dumps(self.as_json())


def reason_from_text(text: str) -> Reason:
    return reason_from_json(json.loads(text))


def reason_from_json(stored: Mapping[str, Any]) -> Reason:
    numbers = dict(stored)
    why = numbers.pop("why", "?")
    try:
        return Reason(Why(why), **numbers)
    except ValueError:
        return Reason(Why.UNKNOWN, name=why)
