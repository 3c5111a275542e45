"""The end of a session that takes more than noticing it: signals, leftovers, limits.

Nobody waits for this as for a start, so here the pens of `act/` and the rules of `decide/` do it.
"""

import os
import signal
import time
from contextlib import closing
from pathlib import Path

from ramherd.act.pens import Pen, cgroup1
from ramherd.act.pens.ending import has_members
from ramherd.act.pens.selection import pen_from_record
from ramherd.act.recovery import recover
from ramherd.core.model import Exit, Job, PenReading, Reason, RunEnd, RunView, Why
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Ended
from ramherd.decide.run_end import judge, limit_reason
from ramherd.exec.nouns import End, Session
from ramherd.exec.pen import SessionPen
from ramherd.exec.program import ENDING, Program
from ramherd.exec.watcher import Watcher
from ramherd.show.reasons import render_reason
from ramherd.store.connect import open_store

LOOK_EVERY_S = 0.01
# Ctrl-C, or another TERM, while we wait: now.
HURRY = {*ENDING, signal.SIGINT}


class Ending:
    def __init__(
        self, session: Session, made: SessionPen, program: Program, watcher: Watcher | None
    ) -> None:
        self._session, self._program, self._watcher = session, program, watcher
        self._kernel_limits = watcher is None
        self.pen = watcher.pen if watcher is not None else full_pen(made, session.limit_bytes)
        self.reading = PenReading()
        program.is_ending = True

    def end(self, told: int, grace_s: float) -> tuple[End, int]:
        """`told` is the signal that ended us. A program that neither ended nor was told to is
        over its limit: it goes at once.
        """
        is_over = self._program.status is None and not told
        self.look()
        if not is_over:
            self.ask(grace_s if told else Policy().leftover_grace_s)
        while self.look():
            self.pen.kill()
            self._program.next_signal(LOOK_EVERY_S)
        return self.judge(told, is_over=is_over)

    def ask(self, grace_s: float) -> None:
        """TERM, and the time to obey it; what is stopped would not hear it."""
        if not self.look():
            return
        self.pen.thaw()
        self.pen.signal(signal.SIGTERM)
        self.pen.signal(signal.SIGCONT)
        deadline = time.monotonic() + grace_s
        while self.look() and time.monotonic() < deadline:
            if self._program.next_signal(LOOK_EVERY_S) in HURRY:
                return

    def look(self) -> bool:
        """Whether somebody is left."""
        self._program.reap()
        if self._watcher is not None:
            self._watcher.adopt()
        someone = has_members(self.pen)
        self.reading = self.pen.read()
        return someone or self._program.status is None

    def judge(self, told: int, *, is_over: bool) -> tuple[End, int]:
        view = self.view()
        if is_over:
            reason = limit_reason(view, self._session.limit_bytes or 0)
            end, code = RunEnd.LIMIT_KILL, 128 + signal.SIGKILL
        elif told:
            end, reason, code = RunEnd.CANCELLED, Reason(Why.INTERRUPTED, signals=1), 128 + told
        else:
            (end, reason), code = judge(view), self.exit_code
        found = End(
            end.value, reason.as_json(),
            view.exit.code if view.exit else None, view.exit.signal if view.exit else None,
        )  # fmt: skip
        found.peak_bytes = self.reading.peak_bytes
        return found, code

    @property
    def exit_code(self) -> int:
        code = os.waitstatus_to_exitcode(self._program.status or 0)
        return code if code >= 0 else 128 - code

    def view(self) -> RunView:
        """A shell that exits with 137 says that its child was killed: it ended so too."""
        session = self._session
        job = Job(
            session.job, session.herd, session.name, 0, tuple(session.argv), "",
            session.memory_bytes, memory_limit_bytes=session.limit_bytes,
        )  # fmt: skip
        code = os.waitstatus_to_exitcode(self._program.status or 0)
        killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL) and self.reading.kernel_kills
        exit_ = Exit(code, None, 0.0) if code >= 0 else Exit(None, -code, 0.0)
        if killed:
            exit_ = Exit(None, signal.SIGKILL, 0.0)
        return RunView(
            session.run, job, 1, 0.0, self.reading, Ended(exit_),
            kernel_limits=self._kernel_limits,
        )  # fmt: skip


def full_pen(made: SessionPen, limit_bytes: int | None) -> Pen:
    """Told its limit, so that it can tell whether that was hit."""
    if made.kind == "cgroup1":
        paths = {name: Path(path) for name, path in made.record["paths"].items()}
        pen = cgroup1.pen_at(paths)
        if limit_bytes is not None:
            pen.set_limit(limit_bytes)
        return pen
    return pen_from_record(made.record)


def recover_all(state: str, runtime: str) -> None:
    with closing(open_store(Path(state))) as store:
        recover(store, Path(runtime), Path(state) / "runs")


def sentence(end: End) -> str:
    numbers = {name: value for name, value in end.reason.items() if name != "why"}
    return render_reason(Reason(Why(end.reason["why"]), **numbers))
