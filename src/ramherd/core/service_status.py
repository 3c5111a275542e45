"""The status that the service writes to `status.json` once a second, and that the API reads.

The API gets nothing else from the supervisor, so it can be tested without one, and neither waits
for the other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

# Runs of agents take seconds to hours, and use tens of MiB to several GiB.
DURATION_BOUNDS = (1, 5, 15, 60, 300, 900, 3600, 14400)
PEAK_BOUNDS = tuple(1 << shift for shift in range(25, 35))


@dataclass
class Histogram:
    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        place = next((at for at, most in enumerate(self.bounds) if value <= most), len(self.bounds))
        self.counts[place] += 1
        self.sum += value

    @property
    def number(self) -> int:
        return sum(self.counts)


@dataclass
class Counters:
    """Counters since the service started: metrics collectors detect a restart by themselves."""

    admissions: int = 0
    holds: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    preemptions: int = 0
    recycles: int = 0
    limit_kills: int = 0
    oom_kills: int = 0
    leftovers: int = 0
    level_changes: int = 0
    alerts: int = 0
    runs: dict[str, int] = field(default_factory=dict)
    durations: Histogram = field(default_factory=lambda: Histogram(DURATION_BOUNDS))
    peaks: Histogram = field(default_factory=lambda: Histogram(PEAK_BOUNDS))


def count(numbers: dict[str, int], name: str) -> None:
    numbers[name] = numbers.get(name, 0) + 1


@dataclass(frozen=True, slots=True)
class RunStatus:
    run: str
    job: str
    name: str
    attempt: int
    used_bytes: int
    peak_bytes: int
    procs: int
    ran_s: float
    grant_bytes: int = 0
    held: bool = False
    leak_bytes_per_s: float = 0.0
    # How long the run has been held; None if it is not held.
    held_s: float | None = None
    ending: bool = False
    # The turn of the agent, and the tool in use.
    doing: str = ""
    # The job's memory_limit; None if it has none.
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    at_s: float = 0.0
    started_s: float = 0.0
    version: str = ""
    pid: int = 0
    pen: str = ""
    level: str = "calm"
    draining: bool = False
    budget_bytes: int = 0
    # What the budget could be with nothing else on the machine: no run can have more.
    largest_budget_bytes: int = 0
    leased_bytes: int = 0
    granted_bytes: int = 0
    used_bytes: int = 0
    residue_bytes: int = 0
    available_bytes: int = 0
    total_bytes: int = 0
    waits_for: Mapping[str, Any] | None = None
    mcp_processes: int = 0
    supervisor_rss_bytes: int = 0
    supervisor_cpu_s: float = 0.0
    keeper_rss_bytes: int = 0
    open_fds: int = 0
    runs: tuple[RunStatus, ...] = ()
    counters: Counters = field(default_factory=Counters)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def parse_status(data: bytes) -> ServiceStatus:
    """Keys from another version are ignored."""
    value = known(ServiceStatus, json.loads(data))
    counters = known(Counters, value.pop("counters", {}))
    for name in ("durations", "peaks"):
        if name in counters:
            counters[name] = Histogram(**counters[name])
    runs = tuple(RunStatus(**known(RunStatus, run)) for run in value.pop("runs", ()))
    return ServiceStatus(**value, runs=runs, counters=Counters(**counters))


def known(shape: Any, value: dict[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(shape)}
    return {name: given for name, given in value.items() if name in names}
