"""Grants on real pens: a run is frozen at its mark, and goes on when it gets more.

The mark is a little below the grant, so that a held run stays within it; the backstop, which is
the kernel's own limit, is a margin above. Who gets how much is decided by the governor, who is
frozen in `decide/hold.py`.
"""

import os

from ramherd.act.kernel_worker import KernelWorker
from ramherd.act.run import LiveRun
from ramherd.core.memory import CacheFull, Hold
from ramherd.core.policies import GrantPolicy
from ramherd.decide.hold import choose_hold, is_at_limit

# A run that reads and writes files crosses its mark by page cache, again and again: its events are
# read so often at most. At 1 GB/s of growth meanwhile it stays below the backstop.
MUTE_S = 0.05
LEAVING_BYTES = 64 << 20


class GrantEnforcer:
    def __init__(self, policy: GrantPolicy) -> None:
        self.policy = policy
        self.worker = KernelWorker()

    def set_first_grant(self, run: LiveRun, grant_bytes: int) -> None:
        """Before any process is in the pen: there is nothing to measure yet."""
        self._set(run, grant_bytes)

    def set_grant(self, run: LiveRun, grant_bytes: int, at_s: float) -> bool:
        """False, and nothing is changed, if the run has grown past the new grant meanwhile."""
        before = run.grant.grant_bytes
        self._set(run, grant_bytes)
        run.measure()
        if grant_bytes < before and run.reading.used_bytes > grant_bytes:
            self._set(run, before)
            run.measure()
            self.enforce(run, at_s)
            return False
        if run.held_since_s is not None and grant_bytes > before:
            self._release(run, at_s)
        else:
            self.enforce(run, at_s)
        return True

    def _set(self, run: LiveRun, grant_bytes: int) -> None:
        mark_bytes = max(grant_bytes - self.policy.arm_below_bytes, 1)
        run.set_grant(grant_bytes, mark_bytes)
        if run.pen is not None:
            run.pen.set_grant(mark_bytes, grant_bytes + self.policy.margin_bytes)
            if run.pen.arms_slowly:
                self.worker.arm(run)

    def receive_armed(self, at_s: float) -> None:
        """New marks are in place. Nothing has reported what was used meanwhile."""
        for run, event, mark in self.worker.receive_armed():
            if run.pen is None:  # it could not be started
                os.close(event)
                continue
            run.pen.set_event(event)
            run.measure()
            self.enforce(run, at_s)
            if mark != run.grant.mark_bytes:  # of two at a time the older may come last
                self.worker.arm(run)

    def _release(self, run: LiveRun, at_s: float) -> None:
        """Only if the new grant is enough for a moment; else its wait begins again."""
        if isinstance(self._choose(run), Hold):
            run.wait_again(at_s)
        else:
            run.release(at_s)

    def raise_backstop(self, run: LiveRun) -> None:
        """A run that was told to end may need a little more to do so: at its backstop it would
        sleep in the kernel, and receive no signal but KILL.
        """
        if run.pen is not None and run.grant.grant_bytes:
            most = run.grant.grant_bytes + self.policy.margin_bytes + LEAVING_BYTES
            run.pen.set_grant(run.grant.mark_bytes, most)

    def receive_event(self, run: LiveRun, at_s: float) -> None:
        """The kernel reports that the run is at its mark, or was."""
        if run.pen is not None:
            run.pen.clear_event()
            run.measure()
            self.enforce(run, at_s)
            if run.grant.cache_full or is_at_limit(run.grant, run.job.memory_limit_bytes):
                run.mute_events(at_s + MUTE_S)

    def enforce(self, run: LiveRun, at_s: float) -> None:
        """After each measurement."""
        if run.held_since_s is not None or run.is_ending:
            return
        chosen = self._choose(run)
        if isinstance(chosen, Hold):
            run.hold(chosen.reason, at_s)
        else:
            run.set_cache_full(is_full=isinstance(chosen, CacheFull))

    def _choose(self, run: LiveRun) -> Hold | CacheFull | None:
        return choose_hold(run.reading, run.grant, run.job.memory_limit_bytes, self.policy)

    def trim(self, run: LiveRun) -> None:
        """In a thread: dropping page cache takes the kernel a while. Half of the way from what
        is used to the mark is left to it.
        """
        run.set_cache_full(is_full=False)
        if run.pen is not None:
            to_bytes = (run.reading.used_bytes + run.grant.mark_bytes) // 2
            self.worker.trim(run.pen, to_bytes)

    def close(self) -> None:
        self.worker.close()
