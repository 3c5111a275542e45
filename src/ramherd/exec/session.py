"""One session from its settings to its exit code."""

import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ramherd.act.pens import Pen
from ramherd.act.pens.cgroup import limit_pids
from ramherd.act.pens.polling import POLL_S
from ramherd.act.pens.selection import POLLED, Fleet, make_fleet
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import StoreError
from ramherd.core.model import (
    Job,
    JobState,
    JobStatus,
    PenReading,
    Reason,
    RunEnd,
    RunView,
    Why,
)
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Running
from ramherd.decide.budget import largest_budget_bytes
from ramherd.exec.admission import Admission
from ramherd.exec.guard import Guarded, start_guard
from ramherd.exec.pen_watch import PenWatch
from ramherd.exec.program import Program
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.store.owner import Owner, OwnerLock
from ramherd.system.files import write_json
from ramherd.system.ids import new_id
from ramherd.system.own_process import become_subreaper
from ramherd.system.procfs import read_process
from ramherd.system.terminal import Terminal

if TYPE_CHECKING:
    from ramherd.exec.session_end import Ending, SessionEnd

# The delay of the first reading: by then a script has become its interpreter.
FIRST_LOOK_S = 0.2
# How often the lease is checked, and how often the used memory is reported to the ledger.
LEASE_EVERY_S, REPORT_EVERY_S = 0.5, 5.0
# The last process to close a store in WAL mode checkpoints and syncs it (10 ms). A shorter session
# leaves that to the next process that opens the store.
SHORT_S = 1.0


class Session(NamedTuple):
    job: Job
    run: str
    policy: Policy
    owner: Owner
    state: Path
    runtime: Path

    @property
    def run_dir(self) -> Path:
        return self.state / "runs" / self.run

    @property
    def tmp(self) -> Path:
        return self.run_dir / "tmp"

    def guarded(self, pen: Pen, dirs: list[str]) -> Guarded:
        return Guarded(
            self.job.herd, self.owner.id, pen.record(), dirs,
            self.policy.grace_s, self.state, self.runtime,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "RAMHERD_RUN": self.run,
            "RAMHERD_JOB": self.job.id,
            "RAMHERD_HERD": self.job.herd,
            "RAMHERD_ATTEMPT": "1",
            "TMPDIR": str(self.tmp),
        }


def run_session(job: Job, kind: str, policy: Policy) -> int:
    """Returns the exit code, when the session is cleared. If anything fails on the way, the guard
    clears the session after this process is gone.
    """
    state, runtime, trees = state_dir(), runtime_dir(), read_trees()
    with closing(OwnerLock(runtime)) as lock:
        session = Session(job, new_id(), policy, lock.owner, state, runtime)
        files = RuntimeFiles(runtime, [lock.restore])
        admission = Admission(job, policy, trees=trees, runtime=files, owner=lock.owner)
        with closing(admission):
            admission.wait()
            return run_admitted(session, kind, trees, admission)


def run_admitted(session: Session, kind: str, trees: Trees, admission: Admission) -> int:
    most = largest_budget_bytes(admission.machine, session.policy)
    fleet, pen = make_pen(session, kind, trees, most + session.policy.fleet_slack_bytes)
    part = pen.spawn_part()
    guard = start_guard(session.guarded(pen, [*part["dirs"], *fleet.dirs()]))
    if not part["join"]:
        become_subreaper()
    terminal, program = Terminal(), Program()
    program.prepare(session.job.argv, session.environment(), part["join"])
    recorder = Recorder(session)
    recorder.record_start(fleet, pen, admission.machine.available_bytes)
    watch = PenWatch(fleet, pen, session.run, guard.pid)
    outcome = run_program(session, program, watch, recorder, admission)
    if outcome.exit.signal is not None or outcome.end is RunEnd.LIMIT_KILL:
        terminal.restore()
    explain(session.job.name, outcome.reason)
    remove_tmp(session.tmp)
    removed = pen.remove() and fleet.remove()
    recorder.record_end(outcome, pens_removed=removed)
    guard.dismiss()
    return outcome.code


def make_pen(session: Session, kind: str, trees: Trees, most_bytes: int) -> tuple[Fleet, Pen]:
    """A session without a `memory_limit` may use as much as all runs of a herd."""
    limit_bytes = session.job.memory_limit_bytes
    fleet, why_weaker = make_fleet(kind, trees, session.owner.id)
    try:
        fleet.set_keeper(session.owner.proc)
        fleet.set_limit(most_bytes)
        pen = fleet.add(session.run, limit_bytes)
        limit_pids(pen, session.policy.pids_limit)
    except OSError:
        fleet.remove()
        raise
    if why_weaker and limit_bytes is not None:
        print_line(POLLED)
    return fleet, pen


def run_program(
    session: Session, program: Program, watch: PenWatch, recorder: "Recorder", admission: Admission
) -> "SessionEnd":
    """From the start of the program until its pen is empty."""
    failure = program.start()
    from ramherd.exec.session_end import Ending, judge_refusal  # noqa: PLC0415 - the program runs

    if failure is not None:
        return judge_refusal(failure)
    if (first := read_process(program.pid)) is not None:
        watch.pen.set_first(first.id)
    if not watch.fleet.kernel_limits:
        recorder.record_pen(watch.pen)
    view = RunView(
        session.run, session.job, 1, time.monotonic(), PenReading(), Running(),
        kernel_limits=watch.fleet.kernel_limits,
    )  # fmt: skip
    ending = Ending(view, watch, program, machine=admission.machine, policy=session.policy)
    return ending.finish(wait_for_end(program, ending, admission))


def wait_for_end(program: Program, ending: "Ending", admission: Admission) -> int:
    """Until the program has ended or is over a polled limit (0), or a signal tells us to end."""
    polled = not ending.view.kernel_limits and ending.view.job.memory_limit_bytes is not None
    every_s, next_report_s = min(POLL_S, FIRST_LOOK_S) if polled else FIRST_LOOK_S, 0.0
    while True:
        program.reap()
        if program.status is not None:
            # A closed window sends HUP to both, and the program may be faster.
            return program.pending_end()
        number = program.next_signal(every_s)
        if number in program.ending:
            return number
        if number is not None:
            continue
        is_due = time.monotonic() >= next_report_s
        if (polled or is_due) and ending.is_over_limit():
            return 0
        admission.renew(ending.view.pen.used_bytes, is_due=is_due)
        if is_due:
            next_report_s = time.monotonic() + REPORT_EVERY_S
            every_s = POLL_S if polled else LEASE_EVERY_S


class Recorder:
    """The session in the store: a herd of one job."""

    def __init__(self, session: Session) -> None:
        from ramherd.store.connect import open_store  # noqa: PLC0415 - while the child joins

        self._session, self._opened_s = session, time.monotonic()
        self._store = open_store(session.state)

    def record_start(self, fleet: Fleet, pen: Pen, available_bytes: int) -> None:
        """Before the program runs, and after the remains of a killed ramherd have been cleared."""
        from ramherd.act.recovery import recover  # noqa: PLC0415 - while the child joins
        from ramherd.store.herds import StoredPen  # noqa: PLC0415
        from ramherd.store.sessions import start_session  # noqa: PLC0415

        session = self._session
        recover(self._store, session.runtime, session.state / "runs")
        status = JobStatus(session.job, JobState.RUNNING, Reason(Why.SUBMITTED), attempts=1)
        pens = [
            StoredPen(session.run, session.run, pen.record()),
            StoredPen(session.owner.id, "", fleet.record()),
        ]
        start_session(
            self._store, session.owner, status, pens,
            run=session.run, available_bytes=available_bytes,
        )  # fmt: skip
        session.tmp.mkdir(0o700, parents=True)
        write_json(str(session.run_dir / "meta.json"), {"interactive": True})

    def record_pen(self, pen: Pen) -> None:
        """Without cgroups a pen is identified by its first process."""
        from ramherd.store.herds import set_pen  # noqa: PLC0415

        set_pen(self._store, self._session.run, pen.record())
        self._store.commit()

    def record_end(self, outcome: "SessionEnd", *, pens_removed: bool) -> None:
        """The exit code is the program's, even if the disk is full."""
        from ramherd.store.sessions import end_session  # noqa: PLC0415

        failures = int(outcome.state is JobState.FAILED)
        status = JobStatus(
            self._session.job, outcome.state, outcome.reason, attempts=1, failures=failures
        )
        try:
            end_session(
                self._store, status, outcome.end, outcome.exit,
                run=self._session.run, peak_bytes=outcome.pen.peak_bytes, pens_removed=pens_removed,
            )  # fmt: skip
            if time.monotonic() - self._opened_s > SHORT_S:
                self._store.close()
        except StoreError as error:
            print_line(str(error))


def remove_tmp(tmp: Path) -> None:
    from ramherd.act.cleanup import is_gone, remove_tree  # noqa: PLC0415 - the program has ended

    if not is_gone(tmp):
        remove_tree(tmp)


def explain(name: str, reason: Reason) -> None:
    """Prints the reasons that the exit code alone does not show."""
    if reason.why is Why.NOT_STARTED:
        print_line(str(reason.numbers["what"]))
    elif reason.why in (Why.LIMIT_KILL, Why.OOM_KILL, Why.NODE_ABORT):
        from ramherd.show.reasons import render_reason  # noqa: PLC0415 - seldom needed

        print_line(f"{name}: {render_reason(reason)}")


def print_line(text: str) -> None:
    try:
        print(f"ramherd: {text}", file=sys.stderr, flush=True)
    except OSError:  # the window is closed
        pass
