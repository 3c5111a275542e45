"""Grants on real pens: a run is held at its mark, and goes on when it is given more.

The mark is a little below the grant, so that what is held stays within it; the backstop, which
is the kernel's own limit, is a margin above. Who gets how much is decided elsewhere.
"""

from ramherd.act.kernel_worker import KernelWorker
from ramherd.act.run import LiveRun
from ramherd.core.policies import GrantPolicy

# A run that reads and writes files crosses its mark by page cache, again and again: heard of so
# often at most. At 1 GB/s of growth meanwhile it stays below the backstop.
MUTE_S = 0.05
LEAVING_BYTES = 64 << 20


class GrantEnforcer:
    def __init__(self, policy: GrantPolicy) -> None:
        self.policy = policy
        self.worker = KernelWorker()

    def begin(self, run: LiveRun, grant_bytes: int) -> None:
        """The first grant, before anybody is in the pen: nothing to look at yet."""
        self._set(run, grant_bytes)

    def give(self, run: LiveRun, grant_bytes: int, at_s: float) -> bool:
        """A new grant. False, and nothing is changed, if the run has grown past it meanwhile."""
        before = run.grant_bytes
        self._set(run, grant_bytes)
        run.cache_full = False
        run.measure()
        if grant_bytes < before and run.reading.used_bytes > grant_bytes:
            self._set(run, before)
            run.measure()
            self.look(run, at_s)
            return False
        if run.held_since_s is not None and grant_bytes > before:
            self._go_on(run, at_s)
        else:
            self.look(run, at_s)
        return True

    def _set(self, run: LiveRun, grant_bytes: int) -> None:
        run.grant_bytes = grant_bytes
        run.mark_bytes = max(grant_bytes - self.policy.arm_below_bytes, 1)
        if run.pen is not None:
            run.pen.set_grant(run.mark_bytes, grant_bytes + self.policy.margin_bytes)
            if run.pen.arms_slowly:
                self.worker.arm(run)

    def take_armed(self, at_s: float) -> None:
        """New marks are in place. What was used meanwhile nobody has seen."""
        for run, event, mark in self.worker.take():
            if run.pen is None:
                continue
            run.pen.take_event(event)
            run.measure()
            self.look(run, at_s)
            if mark != run.mark_bytes:  # of two at a time the older may come last
                self.worker.arm(run)

    def _go_on(self, run: LiveRun, at_s: float) -> None:
        """Only if that is enough for a moment. It was served either way: its wait begins anew."""
        if self._is_full(run):
            run.held_since_s = at_s
        else:
            run.thaw(at_s)

    def let_go(self, run: LiveRun) -> None:
        """Told to end, it may need a little more to do so: at its backstop it would sleep in the
        kernel, and hear nothing but KILL.
        """
        if run.pen is not None and run.grant_bytes:
            most = run.grant_bytes + self.policy.margin_bytes + LEAVING_BYTES
            run.pen.set_grant(run.mark_bytes, most)

    def notice(self, run: LiveRun, at_s: float) -> None:
        """The kernel says that the run is at its mark, or was."""
        if run.pen is not None:
            run.pen.clear_event()
            run.measure()
            self.look(run, at_s)
            if run.cache_full or is_at_limit(run):
                run.muted_until_s = at_s + MUTE_S

    def look(self, run: LiveRun, at_s: float) -> None:
        """After each measurement: hold it if it is full of its own memory."""
        if run.held_since_s is not None or run.is_ending or not run.grant_bytes:
            return
        if self._is_full(run):
            run.freeze(at_s)
        else:
            filled = run.reading.used_bytes + run.reading.cache_bytes
            run.cache_full = self._is_at_mark(filled, run)

    def trim(self, run: LiveRun) -> None:
        """In a thread: dropping page cache takes the kernel a while. Half of the way from what
        is used to the mark is left to it.
        """
        run.cache_full = False
        if run.pen is not None:
            self.worker.trim(run.pen, (run.reading.used_bytes + run.mark_bytes) // 2)

    def close(self) -> None:
        self.worker.close()

    def _is_full(self, run: LiveRun) -> bool:
        return self._is_at_mark(run.reading.used_bytes, run)

    def _is_at_mark(self, held_bytes: int, run: LiveRun) -> bool:
        return held_bytes >= run.mark_bytes - self.policy.near_bytes and not is_at_limit(run)


def is_at_limit(run: LiveRun) -> bool:
    """It may have all of its `memory_limit`: from there on it is the kernel that acts."""
    limit = run.job.memory_limit_bytes
    return limit is not None and run.mark_bytes >= limit
