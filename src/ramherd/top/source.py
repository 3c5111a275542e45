"""Reads the values of one frame: the live ones from the service's API, the rest from the store, the
ledger and the machine, with and without a service.

One thread calls `read` about once a second. What changes seldom or costs much is read seldom: lists
of jobs when an event was stored, processes as often as their scan costs half a percent of a core.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.client.client import Client, is_running
from ramherd.config.load import Config, load_config, make_policy
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.errors import RamherdError, StoreError
from ramherd.core.policies import Policy
from ramherd.core.procid import ProcId
from ramherd.core.reasons import JobState
from ramherd.decide.budget import budget_bytes
from ramherd.decide.start_pause import explain_no_service
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.store.connect import NAME, open_store_to_read
from ramherd.store.events import read_event_range
from ramherd.store.herds import read_lost_herds
from ramherd.store.ledger_file import read_ledger
from ramherd.store.listing import list_herds
from ramherd.store.protocol import Store
from ramherd.store.recent_jobs import (
    NamedEvent,
    count_recent_jobs,
    list_ended_jobs,
    list_live_jobs,
    list_waiting_jobs,
    read_newest_events,
)
from ramherd.store.service_requests import read_paused_s
from ramherd.store.sql.ledger import USE_BY_KIND
from ramherd.store.start_pauses import read_start_pauses
from ramherd.store.subagent_slots import read_ended, read_running, read_sessions
from ramherd.store.usage_windows import read_windows
from ramherd.strays.judge.software import SoftwareTable, parse_software
from ramherd.strays.scan import Scanner
from ramherd.strays.scan import make_policy as make_stray_policy
from ramherd.system import procfs
from ramherd.system.boot_clock import read_boot_s
from ramherd.top.reading import (
    Job,
    MemoryParts,
    ProcessReading,
    Reading,
    ServiceReading,
    split_memory,
)

# At most this many jobs of each list, and events.
LIVE_JOBS, WAITING_JOBS, ENDED_JOBS, EVENTS = 500, 200, 200, 200
ENDED_WITHIN_S = 86_400.0
SAMPLES = 60
# A service that is alive answers within milliseconds.
ANSWERS_WITHIN_S = 3.0
# The service writes its status once a second.
STALE_S = 5.0
# Reasons change with time alone, too: a delay is over, a window resets.
JOBS_EVERY_S, LEDGER_EVERY_S = 5.0, 2.0
SCAN_EVERY_S, SCAN_SHARE = 10.0, 0.005
RUN_LEASE = "run"
# From the snapshot of a live run.
LIVE = (
    "used_bytes", "grant_bytes", "limit_bytes", "leak_bytes_per_s", "held_s", "doing", "ending",
)  # fmt: skip
# A run that the store does not know: the service has another store.
UNSTORED: Mapping[str, Any] = {
    "number": None, "herd": "", "state": "running", "reason": {"why": "submitted"}, "wish": None,
    "started_s": None, "ended_s": None, "updated_s": 0.0, "owner_lost": False, "cost_usd": None,
    "turns": None, "paused_s": None,
}  # fmt: skip


class JobLists(NamedTuple):
    """Lists of the store that change with events."""

    waiting: tuple[Job, ...] = ()
    ended: tuple[Job, ...] = ()
    counts: Mapping[str, int] = {}
    service_herds: frozenset[str] = frozenset()


class TopSource:
    def __init__(self, config: Config) -> None:
        self._policy: Policy = make_policy(config)
        self._jobs = JobReader()
        self._service = ServiceReader()
        self._ledger = Slow(LEDGER_EVERY_S, read_ledger_parts)
        self._processes = ProcessReader(config)
        self._samples: dict[str, deque[int]] = {}

    def read(self) -> Reading:
        problems: list[str] = []
        service = self._service.read()
        stored = self._jobs.read(problems, find_runs(service.snapshot))
        live = with_live_values(stored.live, service.snapshot)
        self._add_samples(live)
        sessions, subagents, ended_subagents = self._ledger.read()
        return Reading(
            at_s=time.time(),
            boot_s=read_boot_s(),
            memory=read_memory(service.snapshot, self._policy),
            service=service,
            live=live,
            waiting=with_service(stored.lists, is_up=service.snapshot is not None),
            ended=stored.lists.ended,
            counts=stored.lists.counts,
            samples={job: tuple(values) for job, values in self._samples.items()},
            paused_s=stored.paused_s,
            windows=stored.windows,
            pauses=stored.pauses,
            sessions=tuple(sessions),
            subagents=tuple(subagents),
            ended_subagents=tuple(ended_subagents),
            processes=self._processes.read(problems),
            events=stored.events,
            problems=tuple(problems),
        )

    def scan_soon(self) -> None:
        """The next reading has a new scan of the processes, and new lists."""
        self._processes.is_due = True
        self._jobs.is_due = True

    def close(self) -> None:
        self._jobs.close()
        self._processes.close()

    def _add_samples(self, live: Iterable[Job]) -> None:
        before, self._samples = self._samples, {}
        for job in live:
            if job.get("used_bytes") is not None:
                samples = before.get(job["id"]) or deque(maxlen=SAMPLES)
                samples.append(job["used_bytes"])
                self._samples[job["id"]] = samples


class ServiceReader:
    """A service that was there and does not answer is a problem; one that never was, is none."""

    def __init__(self) -> None:
        self._was_up = False

    def read(self) -> ServiceReading:
        if not is_running():
            gone = "the service has ended or was killed: ramherd up starts it again"
            return ServiceReading(problem=gone if self._was_up else "")
        self._was_up = True
        try:
            snapshot = Client(timeout_s=ANSWERS_WITHIN_S).snapshot()
        except RamherdError as error:
            return ServiceReading(problem=f"{error}: asked again every second")
        age_s = time.time() - snapshot["at_s"]
        if snapshot["at_s"] and age_s > STALE_S:
            stale = f"the API answers, but the service has reported nothing for {age_s:.0f} s"
            return ServiceReading(snapshot, stale)
        return ServiceReading(snapshot)


class StoredReading(NamedTuple):
    live: tuple[Job, ...] = ()
    lists: JobLists = JobLists()
    events: tuple[NamedEvent, ...] = ()
    paused_s: float | None = None
    windows: tuple[Any, ...] = ()
    pauses: tuple[Mapping[str, Any], ...] = ()


class JobReader:
    """The store. The connection is kept, and opened again after an error."""

    def __init__(self) -> None:
        self.is_due = True
        self._store: Store | None = None
        self._last = StoredReading()
        self._last_event = 0
        self._listed_s = 0.0
        self._warning = ""

    def read(self, problems: list[str], served: Set[str] = frozenset()) -> StoredReading:
        """`served` are the jobs whose values the service has."""
        is_there = has_store()  # the first herd creates it, perhaps while we read
        try:
            self._last = self._read_store(served)
        except StoreError as error:
            problems.append(str(error))
            self.close()
        if not is_there:
            self.close()
        if self._warning:
            problems.append(self._warning)
        return self._last

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None

    def _read_store(self, served: Set[str]) -> StoredReading:
        self._store = self._store or open_store_to_read(state_path(), self._set_warning)
        store, lost = self._store, read_lost_herds(self._store, runtime_path())
        lists, live = self._read_lists(store, lost), self._last.live
        is_known = lists is self._last.lists and all(job["id"] in served for job in live)
        return StoredReading(
            live if is_known else tuple(list_live_jobs(store, lost, LIVE_JOBS)),
            lists,
            self._read_events(store),
            read_paused_s(store),
            tuple(read_windows(store)),
            tuple(read_start_pauses(store).values()),
        )

    def _read_lists(self, store: Store, lost: Mapping[str, Any]) -> JobLists:
        _first, last = read_event_range(store)
        is_old = time.monotonic() - self._listed_s >= JOBS_EVERY_S
        if not is_old and not self.is_due and last == self._last_event:
            return self._last.lists
        self.is_due, self._listed_s = False, time.monotonic()
        since_s = time.time() - ENDED_WITHIN_S
        herds = list_herds(store, most=ENDED_JOBS)
        return JobLists(
            tuple(list_waiting_jobs(store, lost, WAITING_JOBS)),
            tuple(list_ended_jobs(store, lost, since_s, ENDED_JOBS)),
            count_recent_jobs(store, since_s),
            frozenset(herd["herd"] for herd in herds if herd["service"]),
        )

    def _read_events(self, store: Store) -> tuple[NamedEvent, ...]:
        new = read_newest_events(store, self._last_event, EVENTS)
        if not new:
            return self._last.events
        self._last_event = new[-1].seq
        return (*self._last.events, *new)[-EVENTS:]

    def _set_warning(self, text: str) -> None:
        self._warning = text


class Slow:
    """A value that is read less often than every second."""

    def __init__(self, every_s: float, read: Callable[[], Any]) -> None:
        self._every_s, self._read = every_s, read
        self._at_s, self._value = float("-inf"), None

    def read(self) -> Any:
        if time.monotonic() - self._at_s >= self._every_s:
            self._at_s, self._value = time.monotonic(), self._read()
        return self._value


class ProcessReader:
    """Scans as `ramherd ps` does, and records what it saw, so that the grace of orphans counts."""

    def __init__(self, config: Config) -> None:
        self.is_due = True
        self._config = config
        self._scanner: Scanner | None = None
        self._next_s = 0.0
        self._last = ProcessReading()

    def read(self, problems: list[str]) -> ProcessReading:
        if not procfs.has_procfs():
            return self._last
        if self.is_due or time.monotonic() >= self._next_s:
            self.is_due = False
            try:
                self._scan()
            except StoreError as error:
                problems.append(f"cannot record the processes: {error}")
        return self._last

    def close(self) -> None:
        if self._scanner is not None and self._scanner.store is not None:
            self._scanner.store.close()
        self._scanner = None

    def _scan(self) -> None:
        began_s, is_there = time.thread_time(), has_store()
        self._scanner = self._scanner or open_scanner(self._config)
        scan = self._scanner.scan()
        self._last = ProcessReading(scan.scene.at_s, tuple(scan.rows), scan.exact)
        with suppress(OSError):
            self._scanner.record(scan)
        if not is_there:
            self.close()
        cost_s = time.thread_time() - began_s
        self._next_s = time.monotonic() + max(SCAN_EVERY_S, cost_s / SCAN_SHARE)


def has_store() -> bool:
    return (state_path() / NAME).exists()


def open_scanner(config: Config, runtime: Path | None = None) -> Scanner:
    """Without a store of its own on a disk that cannot be written: nothing is recorded then."""
    software = SoftwareTable(parse_software(config.software))
    store: Store | None = None
    with suppress(StoreError):
        store = open_store_to_read(state_path(), lambda _warning: None)
    return Scanner(make_stray_policy(config), software, runtime or runtime_path(), store)


def load_top_config() -> Config:
    """Wrong settings do not keep the screen from being shown: `ramherd config` reports them."""
    return load_config(report=lambda _error: None)


def read_ledger_parts() -> tuple[Any, Any, Any]:
    ledger = str(runtime_path() / "ledger.db")
    sessions = read_sessions(ledger)
    return sessions, read_running(ledger), read_ended(ledger)


class LedgerUse(NamedTuple):
    """The leases of one kind, of an application."""

    pid: int
    start_ticks: int
    kind: str
    leased_bytes: int
    used_bytes: int

    @property
    def granted_bytes(self) -> int:
        """The lease of a `ramherd run` has headroom for jobs to come: only it knows its grants."""
        return self.used_bytes if self.kind == RUN_LEASE else self.leased_bytes


def read_uses() -> list[LedgerUse]:
    statement = USE_BY_KIND.format(boot_id=procfs.read_boot_id())
    rows = read_ledger(str(runtime_path() / "ledger.db"), statement)
    uses = [LedgerUse._make(row) for row in rows]
    return [one for one in uses if procfs.is_running(ProcId(one.pid, one.start_ticks))]


def read_memory(snapshot: Mapping[str, Any] | None, policy: Policy) -> MemoryParts:
    """The use of all applications in the ledger; the service reports its own."""
    uses = read_uses()
    machine = read_machine(read_trees(), herds=[(one.pid, one.used_bytes) for one in uses])
    others = [one for one in uses if snapshot is None or one.pid != snapshot["pid"]]
    granted = sum(one.granted_bytes for one in others)
    used = sum(one.used_bytes for one in others)
    budget = budget_bytes(machine, 0, policy)
    if snapshot is not None:
        granted += snapshot["granted_bytes"]
        used += snapshot["used_bytes"]
        budget = snapshot["budget_bytes"]
    return split_memory(
        machine.total_bytes, machine.available_bytes,
        procfs.read_meminfo_fields().get("MemFree", 0),
        used_bytes=used, granted_bytes=granted, budget_share=policy.budget_share,
        budget_bytes=budget,
    )  # fmt: skip


def find_runs(snapshot: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(() if snapshot is None else (run["job"] for run in snapshot["runs"]))


def with_live_values(stored: Iterable[Job], snapshot: Mapping[str, Any] | None) -> tuple[Job, ...]:
    """The jobs of the store with the values of their runs, and runs that the store lacks."""
    runs = {} if snapshot is None else {run["job"]: run for run in snapshot["runs"]}
    jobs = [{**job, **pick(runs.pop(job["id"], {}))} for job in stored]
    return (*jobs, *(make_unstored(run, snapshot or {}) for run in runs.values()))


def pick(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in LIVE if name in run}


def make_unstored(run: Mapping[str, Any], snapshot: Mapping[str, Any]) -> Job:
    began = {"started_s": snapshot.get("at_s", 0.0) - run["ran_s"]}
    known = {"id": run["job"], "name": run["name"], "attempts": run["attempt"]}
    return {**UNSTORED, **began, **known, **pick(run)}


def with_service(lists: JobLists, *, is_up: bool) -> tuple[Job, ...]:
    """While no service is running, its queued jobs do not start."""
    if is_up:
        return lists.waiting
    reason = explain_no_service().as_json()
    return tuple(
        {**job, "reason": reason}
        if job["state"] == JobState.QUEUED and job["herd"] in lists.service_herds
        else job
        for job in lists.waiting
    )
