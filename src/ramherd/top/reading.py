"""The values of one frame: read together, and never changed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ramherd.core.record import record
from ramherd.decide.usage_limits import UsageWindow
from ramherd.store.recent_jobs import NamedEvent
from ramherd.store.subagent_slots import RunningSubagent, SessionState, SubagentRecord
from ramherd.strays.nouns import PsRow

Job = Mapping[str, Any]


class MemoryParts(NamedTuple):
    """The memory of the machine, in parts whose sum is the total. `granted_bytes` is granted and
    not used yet; `mark_bytes` is the share of the machine that all programs together may use
    before no more runs start.
    """

    total_bytes: int
    others_bytes: int
    used_bytes: int
    granted_bytes: int
    reclaimable_bytes: int
    free_bytes: int
    mark_bytes: int
    budget_bytes: int


class ServiceReading(NamedTuple):
    """`snapshot` is None without a service; then `problem` explains why a service that was there
    does not answer, "" if there was none.
    """

    snapshot: Mapping[str, Any] | None = None
    problem: str = ""


class ProcessReading(NamedTuple):
    """Agents, MCP servers and their tools. Memory that is not in `exact` is anonymous memory."""

    at_s: float = 0.0
    rows: tuple[PsRow, ...] = ()
    exact: frozenset[int] = frozenset()


class SharedServer(NamedTuple):
    """An MCP server of the gateway."""

    name: str
    state: str
    clients: int
    memory_bytes: int
    calls: int = 0


@record
class Reading:
    """Times are epoch seconds, `boot_s` is seconds since boot. `samples` has the memory of each
    live job, second by second.
    """

    at_s: float
    boot_s: float
    memory: MemoryParts
    service: ServiceReading = ServiceReading()
    live: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    ended: tuple[Job, ...] = ()
    counts: Mapping[str, int] = {}
    samples: Mapping[str, tuple[int, ...]] = {}
    paused_s: float | None = None
    windows: tuple[UsageWindow, ...] = ()
    # Why no job starts, of each supervisor: a full disk, a lost keeper.
    pauses: tuple[Mapping[str, Any], ...] = ()
    sessions: tuple[SessionState, ...] = ()
    subagents: tuple[RunningSubagent, ...] = ()
    ended_subagents: tuple[SubagentRecord, ...] = ()
    processes: ProcessReading = ProcessReading()
    # None: there is no gateway.
    servers: tuple[SharedServer, ...] | None = None
    events: tuple[NamedEvent, ...] = ()
    # What could not be read, one sentence each.
    problems: tuple[str, ...] = ()


def split_memory(
    total_bytes: int, available_bytes: int, idle_bytes: int, *,
    used_bytes: int, granted_bytes: int, budget_share: float, budget_bytes: int,
) -> MemoryParts:  # fmt: skip
    """`idle_bytes` is memory that holds nothing, not even cache. A part that was measured a moment
    later than another is cut, so that the sum is always the total.
    """
    available = min(max(available_bytes, 0), total_bytes)
    used = min(used_bytes, total_bytes - available)
    granted = min(max(granted_bytes - used_bytes, 0), available)
    free = min(idle_bytes, available - granted)
    return MemoryParts(
        total_bytes=total_bytes,
        others_bytes=total_bytes - available - used,
        used_bytes=used,
        granted_bytes=granted,
        reclaimable_bytes=available - granted - free,
        free_bytes=free,
        mark_bytes=int(total_bytes * budget_share),
        budget_bytes=budget_bytes,
    )
