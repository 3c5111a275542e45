"""What takes the kernel a while: in threads, in any order, and nothing is left of it."""

import os
import select
import threading
from pathlib import Path

from ramherd.act.grant_enforcer import GrantEnforcer
from ramherd.act.run import LiveRun
from ramherd.core.policies import GrantPolicy
from ramherd.core.units import MIB
from support.fakes import FakePen
from support.make import job


class SlowPen(FakePen):
    """Arms when it is let, and notes which marks, in which thread."""

    arms_slowly = True

    def __init__(self) -> None:
        super().__init__("r1", MIB, 1.0)
        self.alive = True
        self.go, self.armed, self.threads = threading.Event(), list[int](), list[int]()
        self.mark, self.event = 0, -1

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:  # noqa: ARG002
        self.mark = mark_bytes

    def arm(self) -> int | None:
        mark = self.mark
        self.go.wait(10)
        self.threads.append(threading.get_ident())
        self.armed.append(mark)
        return os.eventfd(0)

    def set_event(self, event: int) -> None:
        self.close()
        self.event = event

    def close(self) -> None:
        if self.event >= 0:
            os.close(self.event)


def make_run(pen: SlowPen) -> LiveRun:
    return LiveRun("r1", job("r1"), 1, Path("/nowhere"), 0.0, pen=pen)


def await_armed(enforcer: GrantEnforcer) -> None:
    assert select.select(enforcer.worker.fds, [], [], 10)[0]


def test_a_mark_is_armed_in_a_thread_and_the_run_looked_at_again() -> None:
    """Giving more does not wait for it; what was used meanwhile is seen afterwards."""
    enforcer, pen = GrantEnforcer(GrantPolicy()), SlowPen()
    run = make_run(pen)
    enforcer.set_grant(run, 100 * MIB, 0.0)
    assert (pen.armed, run.held_since_s) == ([], None)

    pen.used = 99 * MIB
    pen.go.set()
    await_armed(enforcer)
    enforcer.receive_armed(1.0)

    assert pen.armed == [run.grant.mark_bytes]
    assert pen.threads != [threading.get_ident()]
    assert run.held_since_s == 1.0
    enforcer.close()
    pen.close()


def test_of_many_marks_the_newest_counts() -> None:
    """Those that waited for their turn are left out; one that comes too late is armed again."""
    enforcer, pen = GrantEnforcer(GrantPolicy()), SlowPen()
    run = make_run(pen)
    for size in (100, 110, 120, 130):
        enforcer.set_grant(run, size * MIB, 0.0)
    pen.go.set()
    while not pen.armed or pen.armed[-1] != run.grant.mark_bytes:
        await_armed(enforcer)
        enforcer.receive_armed(1.0)

    assert len(pen.armed) <= 3
    enforcer.close()
    pen.close()


def test_what_was_armed_for_nobody_is_closed() -> None:
    """The herd is over while a mark is on its way."""
    before = len(os.listdir("/proc/self/fd"))
    enforcer, pen = GrantEnforcer(GrantPolicy()), SlowPen()
    enforcer.set_grant(make_run(pen), 100 * MIB, 0.0)
    pen.go.set()
    enforcer.close()

    assert len(os.listdir("/proc/self/fd")) == before
