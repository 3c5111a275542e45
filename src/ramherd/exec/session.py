"""One session from its options to its exit code."""

from __future__ import annotations

import errno
import os
import signal

from ramherd.core.errors import StoreError
from ramherd.exec.guard import Guard
from ramherd.exec.lease import SessionLease, wait_for_lease
from ramherd.exec.nouns import End, Session
from ramherd.exec.own_cgroups import read_own_cgroups
from ramherd.exec.pen import SessionPen, plan_pen
from ramherd.exec.places import Place
from ramherd.exec.program import NotStarted, Program
from ramherd.exec.room import is_plenty, most_bytes, read_memory
from ramherd.exec.terminal import Screen
from ramherd.store.lock_file import hold
from ramherd.system.files import write_json
from ramherd.system.ids import new_id
from ramherd.system.own_process import become_subreaper

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ramherd.exec.record import Record
    from ramherd.exec.room import Memory
    from ramherd.exec.watcher import Watcher

NOT_FOUND, NOT_EXECUTABLE = 127, 126
# How often a limit is looked at that the kernel does not hold, and the ledger told of what is used.
TICK_S = 0.5
SAY_EVERY_S = 5.0


def run_session(
    argv: list[str], *, memory_bytes: int, limit_bytes: int | None, kind: str,
    no_wait: bool, grace_s: float,
) -> int:  # fmt: skip
    """The exit code, when nothing of the session is left. Whatever goes wrong on the way, the
    guard clears it once we are gone.
    """
    session = Session([new_id() for _ in range(4)], argv, memory_bytes, limit_bytes)
    own = read_own_cgroups()
    memory, place = read_memory(own), Place(session.run)
    lock = f"{place.owners}/{session.owner}"
    _fd = hold(lock)  # kept open: that is what says we live
    lease = SessionLease(place, session.owner)
    if not (is_plenty(memory_bytes, memory) and lease.take(memory_bytes, memory)):
        wait_for_lease(session.name, memory_bytes, lease, no_wait=no_wait)
    pen = make_pen(session, kind, own, most_bytes(memory))
    guard = Guard(session, place, pen.dirs, grace_s)
    if not pen.join:
        become_subreaper()
    screen, program = Screen(), Program()
    program.prepare(argv, environment(session, place), pen.join)
    record = put_on_record(session, pen, place, memory)
    lookout = Lookout(session, pen, guard.pid, lease)
    end, code = run_program(program, record, lookout, grace_s=grace_s)
    if end.signal is not None or end.end == "limit_kill":
        screen.restore()
    tell(session, end)
    remove_tmp(place.tmp)
    note_end(record, session, end, pen_removed=pen.remove())
    lease.close()
    os.unlink(lock)
    guard.dismiss()
    return code


def make_pen(session: Session, kind: str, own: Mapping[str, str], most: int) -> SessionPen:
    pen = plan_pen(kind, own, session.owner, session.run)
    if pen is not None:
        pen.make(session.limit_bytes or most)
    else:
        from ramherd.exec.fleet import make_in_fleet  # noqa: PLC0415

        pen = make_in_fleet(kind, session.owner, session.run, session.limit_bytes, most)
    if pen.why_weaker and session.limit_bytes is not None:
        say(f"the limit is polled, not enforced: {pen.why_weaker}")
    return pen


def put_on_record(session: Session, pen: SessionPen, place: Place, memory: Memory) -> Record:
    """Before the program runs, and after what a killed ramherd left has been cleared."""
    from ramherd.exec.record import Record  # noqa: PLC0415 - while the child joins its pen

    record = Record(f"{place.state}/ramherd.db")
    if record.has_dead_owners(place.owners):
        from ramherd.exec.ending import recover_all  # noqa: PLC0415

        recover_all(place.state, place.runtime)
    record.begin(session, pen, memory.available_bytes)
    os.makedirs(place.tmp, 0o700)
    write_json(f"{place.run}/meta.json", {"interactive": True})
    return record


def run_program(
    program: Program, record: Record, lookout: Lookout, *, grace_s: float
) -> tuple[End, int]:
    """From its start until its pen is empty."""
    session, pen = lookout.session, lookout.pen
    try:
        program.start()
    except NotStarted as error:
        return not_started(error)
    if not pen.join:
        pen.note_start(program.pid)
        record.set_pen(session, pen)
    return watch(program, lookout, grace_s)


def watch(program: Program, lookout: Lookout, grace_s: float) -> tuple[End, int]:
    session, pen = lookout.session, lookout.pen
    told = program.wait(lookout.is_within_limit, lookout.every_s)
    status = program.status
    if told or status is None or is_kill(status) or not pen.is_empty(lookout.guard):
        from ramherd.exec.ending import Ending  # noqa: PLC0415

        return Ending(session, pen, program, lookout.watcher()).end(told or 0, grace_s)
    end, code = judge(status)
    end.peak_bytes = pen.peak_bytes()
    return end, code


class Lookout:
    """Says in the ledger what the session uses, and looks at a limit that the kernel does not
    hold.
    """

    def __init__(self, session: Session, pen: SessionPen, guard: int, lease: SessionLease) -> None:
        self.session, self.pen, self.guard, self._lease = session, pen, guard, lease
        self._watcher: Watcher | None = None
        polled = pen.kind == "polling" and session.limit_bytes is not None
        self.every_s = TICK_S if polled else SAY_EVERY_S

    def watcher(self) -> Watcher | None:
        if self._watcher is None and self.pen.kind == "polling":
            from ramherd.exec.watcher import Watcher  # noqa: PLC0415

            self._watcher = Watcher(self.session, self.pen, self.guard)
        return self._watcher

    def is_within_limit(self) -> bool:
        self._lease.note_used(self.pen.used_bytes())
        watcher = self.watcher()
        return watcher is None or watcher.is_within_limit()


def is_kill(status: int) -> bool:
    """By SIGKILL, or by a shell that says so of its child: perhaps it was the kernel."""
    return os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, 128 + signal.SIGKILL)


def judge(status: int) -> tuple[End, int]:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return End("failed", {"why": "signalled", "signal": -code}, None, -code), 128 - code
    return End("failed" if code else "done", {"why": "exited", "code": code}, code), code


def not_started(error: NotStarted) -> tuple[End, int]:
    code = NOT_FOUND if error.number in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE
    reason = {"why": "not_started", "errno": error.number, "what": str(error)}
    return End("failed", reason, code), code


def note_end(record: Record, session: Session, end: End, *, pen_removed: bool) -> None:
    """The exit code is the program's, also when the disk is full."""
    try:
        record.end(session, end, pen_removed=pen_removed)
        record.close()
    except StoreError as error:
        say(str(error))


def environment(session: Session, place: Place) -> dict[str, str]:
    return {
        **os.environ,
        "RAMHERD_RUN": session.run,
        "RAMHERD_JOB": session.job,
        "RAMHERD_HERD": session.herd,
        "RAMHERD_ATTEMPT": "1",
        "TMPDIR": place.tmp,
    }


def remove_tmp(tmp: str) -> None:
    try:
        os.rmdir(tmp)
    except OSError:
        from pathlib import Path  # noqa: PLC0415

        from ramherd.act.cleanup import remove_tree  # noqa: PLC0415

        remove_tree(Path(tmp))


def tell(session: Session, end: End) -> None:
    """What the exit code alone does not say."""
    if end.reason["why"] == "not_started":
        say(str(end.reason["what"]))
    elif end.end in ("limit_kill", "oom_kill"):
        from ramherd.exec.ending import sentence  # noqa: PLC0415

        say(f"{session.name} was {sentence(end)}")


def say(text: str) -> None:
    try:
        os.write(2, f"ramherd: {text}\n".encode(errors="replace"))
    except OSError:  # the window is gone
        pass
