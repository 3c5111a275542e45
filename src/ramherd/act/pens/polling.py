"""Pens that need no rights: this process finds the processes of each run, and signals them.

They are weaker than cgroups, and the user is warned: growth between two scans is missed, and a
process that leaves the tree with a cleaned environment is attributed only while the keeper lives.
The keeper is a subreaper, so a process that loses its parent becomes the keeper's child and is
attributed by an earlier scan, by its environment tag, or by its session.
"""

import signal
from typing import Any

from ramherd.act.pens import SpawnPart
from ramherd.core.model import PenReading, ProcId
from ramherd.core.procid import Process
from ramherd.system.pidfd import signal_processes
from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import is_running, read_anonymous_bytes, read_processes, read_variable

KIND = "polling"
TAG = "RAMHERD_RUN"
# How often a limit is checked that the kernel does not enforce. At 1 GiB/s of growth, a program is
# 100 MiB over its limit at the next check.
POLL_S = 0.1


class PollingFleet:
    """The processes of each run, as of the last scan."""

    kind = KIND
    kernel_limits = False
    # A scan of 100 processes takes 2 ms, a scan of 1000 about 20 ms.
    soon_s = 0.05

    def __init__(self, proc: Root = PROC) -> None:
        self._proc = proc
        self._keeper: ProcId | None = None
        self._keeper_lives = False
        self._pens: dict[str, PollingPen] = {}
        self._owner: dict[ProcId, str] = {}
        self._strangers: set[ProcId] = set()
        self._peak = 0

    def set_keeper(self, keeper: ProcId) -> None:
        self._keeper = keeper

    def add(self, run: str, limit_bytes: int | None) -> "PollingPen":  # noqa: ARG002
        pen = self._pens[run] = PollingPen(run, self)
        return pen

    def drop(self, run: str) -> None:
        self._pens.pop(run, None)
        self._owner = {proc: owner for proc, owner in self._owner.items() if owner != run}

    def set_owner(self, proc: ProcId, run: str) -> None:
        self._owner[proc] = run

    def scan(self) -> None:
        """Scans all processes once, for all pens."""
        procs = {proc.id.pid: proc for proc in read_processes(self._proc)}
        keeper = procs.get(self._keeper.pid) if self._keeper is not None else None
        self._keeper_lives = keeper is not None and keeper.id == self._keeper and keeper.is_alive
        owners: dict[int, str | None] = {}
        for pid in procs:
            self._find_owner(pid, procs, owners)
        living = {procs[pid].id: run for pid, run in owners.items() if run is not None}
        self._owner = {proc: run for proc, run in living.items() if run in self._pens}
        self._strangers &= {proc.id for proc in procs.values()}
        members: dict[str, list[Process]] = {run: [] for run in self._pens}
        for proc_id, run in self._owner.items():
            if procs[proc_id.pid].is_alive:
                members[run].append(procs[proc_id.pid])
        for run, pen in self._pens.items():
            pen.members = members[run]

    def _find_owner(
        self, pid: int, procs: dict[int, Process], owners: dict[int, str | None]
    ) -> str | None:
        """The owner that is on record, or the parent's, or by its own marks; a long line of
        ancestors is walked once.
        """
        line: list[int] = []
        run: str | None = None
        while pid in procs and pid not in owners:
            line.append(pid)
            run = self._owner.get(procs[pid].id) or self._marked(procs[pid])
            if run is not None or self._is_top(procs[pid]):
                break
            pid = procs[pid].ppid
        else:
            run = owners.get(pid)
        owners.update(dict.fromkeys(line, run))
        return run

    def _is_top(self, proc: Process) -> bool:
        return self._keeper_lives and self._keeper is not None and proc.ppid == self._keeper.pid

    def _marked(self, proc: Process) -> str | None:
        """The owner by our tag or session, read for the keeper's own children, or for all processes
        once the keeper is gone. Each process is read only once.
        """
        if proc.id in self._strangers:
            return None
        if self._keeper_lives and not self._is_top(proc):
            return None
        tag = read_variable(proc.id.pid, TAG, self._proc)
        run = tag if tag in self._pens else self._by_session(proc)
        if run is None:
            self._strangers.add(proc.id)
        return run

    def _by_session(self, proc: Process) -> str | None:
        """A session keeps its number while it has a process; after that, and after a reboot,
        another session may have the number, so its first process has to be alive.
        """
        for run, pen in self._pens.items():
            if pen.first is not None and pen.first.pid == proc.sid:
                return run if self._keeper_lives or is_running(pen.first, self._proc) else None
        return None

    def read(self) -> PenReading:
        readings = [pen.read() for pen in self._pens.values()]
        used = sum(reading.used_bytes for reading in readings)
        self._peak = max(self._peak, used)
        return PenReading(used, self._peak, sum(reading.procs for reading in readings))

    def set_limit(self, limit_bytes: int) -> None:
        """Only admission enforces the limit."""

    def dirs(self) -> list[str]:
        return []

    def remove(self) -> bool:
        return True

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind}


class PollingPen:
    def __init__(self, run: str, fleet: PollingFleet, first: ProcId | None = None) -> None:
        self._run = run
        self._fleet = fleet
        self._peak = 0
        self.first = first
        self.members: list[Process] = []

    def spawn_part(self) -> SpawnPart:
        return {"join": [], "on_loss": {"thaw": [], "kill": []}, "dirs": []}

    def set_first(self, first: ProcId) -> None:
        self.first = first
        self._fleet.set_owner(first, self._run)

    def set_empty(self) -> None:
        """Every process of the pen has ended: no scan is needed."""
        self.members = []

    def read(self) -> PenReading:
        used = sum(read_anonymous_bytes(proc.id.pid) for proc in self.members)
        self._peak = max(self._peak, used)
        alive = sum(is_running(proc.id) for proc in self.members)
        return PenReading(used_bytes=used, peak_bytes=self._peak, procs=alive)

    def pids(self) -> list[int]:
        return [proc.id.pid for proc in self.members]

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        """Not needed: the caller compares the readings with the grant."""

    def grant_fd(self) -> int | None:
        """There is no event: the caller has to poll."""
        return None

    def clear_event(self) -> None:
        """There are no events."""

    arms_slowly = False

    def arm(self) -> int | None:
        return None

    def set_event(self, event: int) -> None:
        """There are no events."""

    def trim(self, to_bytes: int) -> None:
        """Not needed: page cache is not counted."""

    can_reclaim = False

    def reclaim(self, most_bytes: int) -> None:
        """Not supported: there is no cgroup."""

    def signal(self, number: int) -> int:
        self._fleet.scan()
        return signal_processes((proc.id for proc in self.members), number)

    def freeze(self) -> None:
        """STOP until no new process appears: a stopped process cannot fork."""
        stopped: set[ProcId] = set()
        while True:
            self._fleet.scan()
            fresh = {proc.id for proc in self.members} - stopped
            if not fresh:
                return
            signal_processes(fresh, signal.SIGSTOP)
            stopped |= fresh

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.freeze()
        signal_processes((proc.id for proc in self.members), signal.SIGKILL)

    def residue_bytes(self) -> int:
        return 0

    def remove(self, wait_s: float = 2.0) -> bool:  # noqa: ARG002
        self._fleet.drop(self._run)
        return True

    def record(self) -> dict[str, Any]:
        first = self.first
        return {
            "kind": KIND,
            "run": self._run,
            "first": [first.pid, first.start_ticks] if first is not None else None,
        }
