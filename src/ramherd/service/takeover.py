"""The remains of an earlier service: adopts its keeper with the runs that it has, judges runs that
ended meanwhile, ends runs that cannot be adopted, and puts their jobs back to be resumed.
"""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ramherd.act.cleanup import remove_tree
from ramherd.act.executor import is_heap_exhausted, read_exit
from ramherd.act.keeper_client import ANSWER_S, KeeperClient, adopt_keeper
from ramherd.act.pens.selection import Fleet, adopt_pen, fleet_from_record, pen_from_record
from ramherd.act.recovery import clear, drop_clients_of_run
from ramherd.act.run import LiveRun
from ramherd.core.errors import NoPen
from ramherd.core.model import Event, JobState, JobStatus, ProcId, Reason, RunEnd, Stopping, Why
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Ended, Starting
from ramherd.core.service_status import parse_status
from ramherd.core.units import count
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.costs import after_spending
from ramherd.decide.job_state import after_run
from ramherd.decide.run_end import judge
from ramherd.decide.suspects import after_other_death
from ramherd.measure.cgroups import Trees
from ramherd.measure.last_error import read_last_error
from ramherd.measure.machine import read_machine
from ramherd.service.service_agents import ServiceAgents
from ramherd.show.reasons import render_reason
from ramherd.store.events import add_event
from ramherd.store.herds import (
    SERVICE,
    StoredPen,
    drop_pen,
    end_run,
    read_pens,
    set_error,
    set_job,
    set_said,
)
from ramherd.store.protocol import Store
from ramherd.store.service_herds import end_if_over
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_runs import OpenRun, read_fleets, read_open_runs, read_stopping
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.system.pidfd import open_process, send_signal, wait_ends
from ramherd.system.procfs import read_boot_id


@dataclass
class Adopted:
    """`runs` go on under `keeper` in `fleet`; `stuck` counts runs that could not be ended."""

    fleet_id: str = ""
    fleet: Fleet | None = None
    keeper: KeeperClient | None = None
    runs: list[LiveRun] = field(default_factory=list)
    ended: int = 0
    lost: int = 0
    stuck: int = 0
    # Keepers that did not answer.
    hung: int = 0
    # Jobs during whose runs the keeper died once too often.
    failed: list[JobStatus] = field(default_factory=list)
    # Runs of keepers that are not in the store, because the store was lost.
    unknown: int = 0


@dataclass
class Takeover:
    store: Store
    backlog: ServiceQueue
    state: Path
    runtime: Path
    trees: Trees
    policy: Policy
    agents: ServiceAgents
    # When the last service was last seen alive, if its keeper died too, but not by a reboot.
    _seen_s: float | None = None
    _open_runs: int = 0
    # Runs ended by a reboot have no pens: their names and pids may belong to others by now.
    _has_pens: bool = True

    @property
    def runs_dir(self) -> Path:
        return self.state / "runs"

    def run(self) -> Adopted:
        adopted = Adopted()
        self._has_pens = any(map(is_of_this_boot, read_fleets(self.store)))
        for stored in read_fleets(self.store):
            if adopted.keeper is None and is_of_this_boot(stored):
                self._adopt(stored, adopted)
        if adopted.keeper is None and self._has_pens and not adopted.hung:
            self._record_keeper_death()
        known = set(adopted.keeper.known) if adopted.keeper is not None else set()
        open_runs = read_open_runs(self.store)
        self._open_runs = len(open_runs)
        for run in open_runs:
            if run.run in known and adopted.fleet is not None:
                adopted.runs.append(self._adopt_run(run, adopted.fleet))
            else:
                self._end(run, adopted)
        self._clear_pens(adopted)
        self._end_unknown_keepers(adopted)
        return adopted

    def _adopt(self, stored: StoredPen, adopted: Adopted) -> None:
        paths = adoption_paths(self.state, self.runtime, stored.id)
        deadline_s = time.monotonic() + ANSWER_S
        found = map(adopt_keeper, paths)
        keeper = next((keeper for keeper in found if keeper is not None), None)
        if keeper is None:
            adopted.hung += end_hung_keeper(stored, deadline_s)
            for path in paths:
                path.unlink(missing_ok=True)
            return
        try:
            adopted.fleet = fleet_from_record(stored.record, self.trees)
        except NoPen:
            keeper.kill()
            return
        adopted.fleet_id, adopted.keeper = stored.id, keeper

    def _record_keeper_death(self) -> None:
        """Service and keeper died: treated as the death of the keeper alone."""
        self._seen_s = read_seen_s(self.runtime / "status.json")
        for status in self.backlog.read_suspected():
            if status.suspicion.alone:
                self._change(after_other_death(status))
        self.store.commit()

    def _explain_loss(self, run: OpenRun) -> Reason:
        if self._seen_s is None:
            return Reason(Why.SUPERVISOR_LOST)
        lived_s = round(max(self._seen_s - run.started_s, 0.0), 3)
        return Reason(Why.SUPERVISOR_LOST, beside=self._open_runs - 1, lived_s=lived_s)

    def _adopt_run(self, run: OpenRun, fleet: Fleet) -> LiveRun:
        job = run.status.job
        started_s, uncounted_s = read_clock(run, time.monotonic())
        pen = adopt_pen(fleet, run.pen, job.memory_limit_bytes) if run.pen is not None else None
        live = LiveRun(
            run.run, job, run.attempt, self.runs_dir, started_s, started_s,
            label_of(class_of(job)), run.home, pen,
            phase=stopping_of(run, self.runs_dir) or Starting(),
            gaps_s=uncounted_s,
        )  # fmt: skip
        self._read_output(run, live)
        if run.status.state is not JobState.RUNNING:
            self._change(replace(run.status, state=JobState.RUNNING, reason=Reason(Why.ADOPTED)))
        self._emit("run_adopted", Reason(Why.ADOPTED), run)
        self.store.commit()
        return live

    def _end(self, run: OpenRun, adopted: Adopted) -> None:
        """First the pen, then the record: a job is not started again while its last run lives."""
        exit_ = read_exit(self.runs_dir / run.run, time.monotonic())
        pen = pen_from_record(run.pen) if run.pen is not None and self._has_pens else None
        stop, at_s = stopping_of(run, self.runs_dir), time.monotonic()
        heap_exhausted = is_heap_exhausted(self.runs_dir / run.run, exit_)
        live = LiveRun(
            run.run, run.status.job, run.attempt, self.runs_dir, at_s, pen=pen,
            phase=Ended(exit_, stop, heap_exhausted=heap_exhausted),
        )  # fmt: skip
        if run.pen is not None and pen is not None:
            live.measure()
            if not clear(StoredPen(run.home, run.run, run.pen)):
                adopted.stuck += 1
                return
        remove_tree(self.runs_dir / run.home / "tmp")
        self._read_output(run, live)
        if exit_ is None and stop is None:
            status = self._record_end(run, live, RunEnd.LOST, self._explain_loss(run))
            if status.state is JobState.FAILED:
                adopted.failed.append(status)
            else:
                adopted.lost += 1
        else:
            adopted.ended += 1
            end, reason = judge(live.view(kernel_limits=True, at_s=time.monotonic()))
            self._record_end(run, live, end, reason)

    def _read_output(self, run: OpenRun, live: LiveRun) -> None:
        if live.job.brief is not None:
            self.agents.load().adopt(live, resumed=run.status.interrupted)

    def _record_end(self, run: OpenRun, live: LiveRun, end: RunEnd, reason: Reason) -> JobStatus:
        status = after_run(
            run.status, end, reason, at_s=time.monotonic(), policy=self.policy, hit_bytes=0
        )
        end_run(
            self.store,
            run.run,
            end,
            reason,
            live.exit,
            peak_bytes=live.reading.peak_bytes,
            least_bytes=0,
            after_bytes=0,
        )
        drop_pen(self.store, run.home)
        if live.agent_run is not None:
            most = largest_budget_bytes(read_machine(self.trees), self.policy)
            self.agents.load().end(live, end, most_bytes=most)
            set_said(self.store, live.job.id, live.agent_run.next_record())
            status = after_spending(status, self.agents.load().read_money_left(live))
        elif end is RunEnd.FAILED and live.exit is not None:
            set_error(self.store, live.job.id, read_last_error(live.dir) or None)
        self._emit("run_ended", reason, run)
        self._change(status)
        self.store.commit()
        return status

    def _change(self, new: JobStatus) -> None:
        now = time.time()
        for status in self.backlog.change(new):
            set_job(self.store, status)
            job = status.job
            kind = f"job_{status.state.value}"
            if status.state is not JobState.RUNNING:
                add_event(self.store, Event(kind, status.reason, now, job.herd, job.id))
            if status.state.is_final:
                end_if_over(self.store, job.herd, now)
                if self.agents.parts.runs is not None:
                    self.agents.parts.runs.end_job(job)

    def _emit(self, kind: str, reason: Reason, run: OpenRun) -> None:
        job = run.status.job
        add_event(self.store, Event(kind, reason, time.time(), job.herd, job.id, run.run))

    def _clear_pens(self, adopted: Adopted) -> None:
        """Clears the pens of runs that had ended already, then the fleets without a run."""
        kept = {adopted.fleet_id, *(run.home for run in adopted.runs)}
        stuck = {run.home for run in read_open_runs(self.store)} - kept
        pens = sorted(read_pens(self.store, SERVICE), key=lambda pen: not pen.run)
        for stored in pens:
            if stored.id in kept | stuck or (stuck and not stored.run):
                continue
            if not self._has_pens or clear(stored):
                drop_pen(self.store, stored.id)
                if stored.run:
                    remove_tree(self.runs_dir / stored.id / "tmp")
                    drop_clients_of_run(self.runtime, stored.id)
        self.store.commit()

    def _end_unknown_keepers(self, adopted: Adopted) -> None:
        """A keeper whose fleet is not in the store outlived its store: its runs belong to no job. A
        keeper that listens in the runtime directory may have runs of another store: it stays.
        """
        fleets = {stored.id for stored in read_fleets(self.store)}
        for path in adoption_paths(self.state, self.runtime, ""):
            for found in sorted(path.iterdir()) if path.is_dir() else ():
                if found.name in fleets or (keeper := adopt_keeper(found)) is None:
                    continue
                if not all((self.runs_dir / run).is_dir() for run in keeper.known):
                    keeper.leave()
                    continue
                keeper.close()
                found.unlink(missing_ok=True)
                for run in keeper.known:
                    remove_tree(self.runs_dir / run / "tmp")
                adopted.unknown += len(keeper.known)


def read_clock(run: OpenRun, now_s: float) -> tuple[float, float]:
    """The start by the monotonic clock, and the time since then that does not count. The wall
    clock, which may have been set meanwhile, is used only for runs of an earlier version.
    """
    if run.clock is not None and run.clock.boot_id == read_boot_id():
        return run.clock.started_s, run.clock.uncounted_s
    return now_s - max(time.time() - run.started_s, 0.0), 0.0


def stopping_of(run: OpenRun, runs_dir: Path) -> Stopping | None:
    """The order to end that an earlier service gave. Its grace period starts again now."""
    order = run.stopping or read_stopping(runs_dir / run.run)
    return Stopping(*order, time.monotonic()) if order is not None else None


def is_of_this_boot(stored: StoredPen) -> bool:
    return bool(stored.record.get("boot_id") == read_boot_id())


def end_hung_keeper(stored: StoredPen, deadline_s: float) -> bool:
    """Whether the keeper of that fleet had to be killed, because it could not be adopted. A keeper
    that is ending no longer listens, but still records how its runs end: it has until the deadline.
    """
    keeper = stored.record.get("keeper")
    pidfd = open_process(ProcId(*keeper)) if keeper is not None else None
    if pidfd is None:
        return False
    try:
        is_hung = bool(wait_ends([pidfd], deadline_s - time.monotonic()))
        return is_hung and send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def read_seen_s(path: Path) -> float:
    """The time of the last status that a service published; it does so once a second."""
    try:
        return parse_status(path.read_bytes()).at_s
    except (OSError, ValueError):
        return time.time()


def adoption_paths(state: Path, runtime: Path, fleet: str) -> tuple[Path, Path]:
    """In the state directory, which outlives a logout. The runtime directory is for file systems
    without sockets, and for keepers that an older ramherd started.
    """
    return state / "keepers" / fleet, runtime / "keepers" / fleet


def first_grant(live: LiveRun, quantum_bytes: int) -> int:
    """The memory that the run uses, plus two quanta until the governor decides."""
    live.measure()
    return live.reading.used_bytes + 2 * quantum_bytes


def describe(adopted: Adopted) -> Iterable[str]:
    if adopted.runs:
        yield f"adopted {count(len(adopted.runs), 'run')} that continued meanwhile"
    if adopted.ended:
        yield f"{count(adopted.ended, 'run')} ended meanwhile"
    if adopted.lost:
        yield f"lost {count(adopted.lost, 'run')}: their jobs are queued again"
    if adopted.hung:
        yield f"the keeper did not answer for {ANSWER_S:.0f} s and was killed: its jobs are resumed"
    for status in adopted.failed:
        yield f"{status.job.name} failed: {render_reason(status.reason)}"
    if adopted.unknown:
        yield f"{adopted.unknown} runs that the store does not know were ended"
    if adopted.stuck:
        yield f"{adopted.stuck} runs cannot be ended: their jobs wait for that"
