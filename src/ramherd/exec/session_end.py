"""The end of a session: the rules of `decide/run_end.py`, applied to one pen.

Imported while the program runs, so that the start is not delayed.
"""

import errno
import os
import signal
import time
from collections.abc import Sequence
from typing import NamedTuple

from ramherd.act.pens.ending import end_pens
from ramherd.core.model import (
    Action,
    Exit,
    JobState,
    Machine,
    PenReading,
    Reason,
    Refusal,
    RunEnd,
    RunView,
    Snapshot,
    Stop,
)
from ramherd.core.policies import Policy
from ramherd.core.record import replace
from ramherd.core.run_phase import Clearing, Output, Stopping, stop_of
from ramherd.decide import run_end
from ramherd.decide.job_state import FINAL
from ramherd.decide.run_end import judge, stop_grace_s, stop_interrupted, stop_over_limit
from ramherd.exec.pen_watch import PenWatch
from ramherd.exec.program import ENDING, NotStarted, Program
from ramherd.system.procfs import read_exe

LOOK_EVERY_S = 0.01
# Ctrl-C, or another TERM, while the pen is being emptied: KILL now.
HURRY = {*ENDING, signal.SIGINT}
NODE = "node"
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class SessionEnd(NamedTuple):
    end: RunEnd
    reason: Reason
    exit: Exit
    pen: PenReading
    # The exit code of `ramherd exec`.
    code: int

    @property
    def state(self) -> JobState:
        """There are no retries."""
        return FINAL.get(self.end, JobState.FAILED)


class Ending:
    """`view` is the run as the rules see it."""

    def __init__(
        self, view: RunView, watch: PenWatch, program: Program, *, machine: Machine, policy: Policy
    ) -> None:
        self.view = view
        self._watch, self._program = watch, program
        self._machine, self._policy = machine, policy

    def is_over_limit(self) -> bool:
        """Where the kernel does not enforce the limit, it is compared here."""
        self._read()
        self._stop(stop_over_limit(self._snapshot()))
        return self.view.stop is not None

    def _stop(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Stop):
                stopping = Stopping(action.end, action.reason, time.monotonic())
                self.view = replace(self.view, phase=stopping)

    def finish(self, told: int) -> SessionEnd:
        """`told` is the signal that tells us to end, or 0."""
        self._program.is_ending = True
        if told:
            self._stop(stop_interrupted(self._snapshot(interrupts=1)))
        stop = self.view.stop
        policy = self._policy
        grace_s = stop_grace_s(self.view, stop, policy) if stop else policy.leftover_grace_s
        end_pens([self._watch.pen], grace_s, self._wait)
        end, reason = judge(self.view)
        exit_ = self.view.exit or Exit(None, signal.SIGKILL, time.monotonic())
        return SessionEnd(end, reason, exit_, self.view.pen, choose_exit_code(exit_, end, told))

    def _wait(self, for_s: float) -> bool:
        """Whether nothing is left; HURRY signals end the wait early."""
        deadline = time.monotonic() + for_s
        while True:
            self._read()
            if self.view.exit is not None and not self.view.pen.procs:
                return True
            if time.monotonic() >= deadline or self._program.next_signal(LOOK_EVERY_S) in HURRY:
                return False

    def _read(self) -> None:
        self._program.reap()
        self.view = replace(self.view, pen=self._watch.read())
        status, phase = self._program.status, self.view.phase
        if status is None and not self.view.is_node:
            self.view = replace(self.view, is_node=runs_node(self._program.pid))
        if status is not None and self.view.exit is None:
            exit_ = parse_status(status, time.monotonic())
            clearing = Clearing(exit_, stop_of(phase), output=Output.CLOSED)
            self.view = replace(self.view, phase=clearing)

    def _snapshot(self, interrupts: int = 0) -> Snapshot:
        now_s = time.monotonic()
        return Snapshot(now_s, self._machine, [self.view], (), interrupts=interrupts)


def parse_status(status: int, at_s: float) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    return Exit(code, None, at_s) if code >= 0 else Exit(None, -code, at_s)


def runs_node(pid: int) -> bool:
    return os.path.basename(read_exe(pid) or "") == NODE


def choose_exit_code(exit_: Exit, end: RunEnd, told: int) -> int:
    """The program's, or as a shell reports it if a signal ended the program or us."""
    if told:
        return 128 + told
    if end is RunEnd.LIMIT_KILL:
        return 128 + signal.SIGKILL
    return exit_.code if exit_.code is not None else 128 + (exit_.signal or 0)


def judge_refusal(failure: NotStarted) -> SessionEnd:
    code = NOT_FOUND if failure.number in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE
    end, reason = run_end.judge_refusal(Refusal(failure.number, failure.what))
    return SessionEnd(end, reason, Exit(code, None, time.monotonic()), PenReading(), code)
