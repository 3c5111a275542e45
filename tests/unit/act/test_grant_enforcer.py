"""A run stands still at its grant, and goes on when there is room."""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.act.grant_enforcer import MUTE_S, GrantEnforcer
from ramherd.act.run import KEEP_HOLDS, LiveRun
from ramherd.core.model import Reason, Refusal, RunEnd, Why
from ramherd.core.policies import GrantPolicy
from ramherd.core.run_phase import Running
from ramherd.core.units import MIB
from support.fakes import FakePen
from support.make import exited, job, stopping
from support.reached import Reached

POLICY = GrantPolicy()
NEAR = POLICY.near_bytes
HELD = Reason(Why.AT_GRANT, used_bytes=1, grant_bytes=1)
MARK = 100 * MIB - POLICY.arm_below_bytes


@pytest.fixture
def enforcer() -> Iterator[GrantEnforcer]:
    with closing(GrantEnforcer(POLICY)) as made:
        yield made


def pen_of(run: LiveRun) -> FakePen:
    assert isinstance(run.pen, FakePen)
    return run.pen


def live(used: int = 0, *, grant: int = 0, cache: int = 0, **of: Any) -> LiveRun:
    pen = FakePen("R", used, 1e9, cache=cache)
    pen.begin()
    run = LiveRun("R", job("a", **of), 1, Path("/runs"), 0.0, pen=pen, phase=Running())
    if grant:
        GrantEnforcer(POLICY).set_grant(run, grant, 0.0)
    return run


def test_a_grant_is_a_mark_below_and_a_backstop_above(enforcer: GrantEnforcer) -> None:
    """What is held at the mark stays within the grant; the kernel's own limit is a margin off."""
    run = live()

    assert enforcer.set_grant(run, 100 * MIB, 0.0)

    pen = pen_of(run)
    assert (run.grant.grant_bytes, run.grant.mark_bytes) == (100 * MIB, MARK)
    assert (pen.mark_bytes, pen.most_bytes) == (MARK, 100 * MIB + POLICY.margin_bytes)


def test_a_grant_smaller_than_the_margin_has_a_mark_all_the_same(enforcer: GrantEnforcer) -> None:
    """A threshold of nothing, or less, is none."""
    run = live()

    enforcer.set_grant(run, MIB, 0.0)

    assert pen_of(run).mark_bytes == 1


@pytest.mark.parametrize(("used", "held"), [(MARK - POLICY.near_bytes - 1, False), (MARK, True)])
def test_a_run_is_held_at_its_mark(enforcer: GrantEnforcer, used: int, *, held: bool) -> None:
    """Charges come in batches: a little before counts as being there."""
    run = live(grant=100 * MIB)
    pen_of(run).used = used

    run.measure()
    enforcer.enforce(run, 5.0)

    assert pen_of(run).frozen is held
    assert run.held_since_s == run.frozen_s == (5.0 if held else None)


def test_a_mark_below_what_is_used_already_is_not_announced_so_it_is_looked_at(
    enforcer: GrantEnforcer,
) -> None:
    """A threshold that is armed too late never fires."""
    run = live(MARK)

    assert enforcer.set_grant(run, 100 * MIB, 3.0)

    assert (pen_of(run).frozen, run.held_since_s) == (True, 3.0)


def test_page_cache_never_holds_a_run(enforcer: GrantEnforcer) -> None:
    """It is told as what it is; what is heard of it is not heard again at once."""
    run = live(10 * MIB, grant=100 * MIB, cache=500 * MIB)

    enforcer.receive_event(run, 5.0)

    assert (pen_of(run).frozen, run.held_since_s, run.grant.cache_full) == (False, None, True)
    assert run.grant.muted_until_s == 5.0 + MUTE_S


def test_a_run_that_is_held_is_heard_again_at_once(enforcer: GrantEnforcer) -> None:
    """Its next mark is news."""
    run = live(grant=100 * MIB)
    pen_of(run).used = MARK

    enforcer.receive_event(run, 5.0)

    assert (run.held_since_s, run.grant.muted_until_s) == (5.0, 0.0)


def test_a_lowering_that_the_run_has_outgrown_is_undone(enforcer: GrantEnforcer) -> None:
    """The kernel would refuse it, or kill; all is as it was before."""
    run = live(10 * MIB, grant=100 * MIB)
    pen_of(run).used = 60 * MIB

    assert not enforcer.set_grant(run, 50 * MIB, 5.0)

    assert (run.grant.grant_bytes, pen_of(run).mark_bytes, pen_of(run).frozen) == (
        100 * MIB,
        MARK,
        False,
    )
    assert run.reading.used_bytes == 60 * MIB


def test_a_run_that_has_filled_what_it_is_left_with_is_held(enforcer: GrantEnforcer) -> None:
    """It grew past its old mark while the lowering was tried: that mark fires no more."""
    run = live(10 * MIB, grant=100 * MIB)
    pen_of(run).used = MARK

    assert not enforcer.set_grant(run, 50 * MIB, 5.0)

    assert (run.held_since_s, pen_of(run).frozen) == (5.0, True)


def test_a_lowering_down_to_what_is_used_is_carried_out(enforcer: GrantEnforcer) -> None:
    """And holds the run: it is full of its own memory."""
    run = live(50 * MIB, grant=100 * MIB)

    assert enforcer.set_grant(run, 50 * MIB, 5.0)

    assert (run.grant.grant_bytes, pen_of(run).frozen) == (50 * MIB, True)


def held(used: int = MARK, grant: int = 100 * MIB, **of: Any) -> LiveRun:
    run = live(used, grant=grant, **of)
    assert run.held_since_s == 0.0
    return run


def test_a_held_run_goes_on_when_there_is_room(enforcer: GrantEnforcer) -> None:
    """What it stood still for is counted."""
    run = held()

    enforcer.set_grant(run, 132 * MIB, 4.0)

    assert (pen_of(run).frozen, run.held_since_s, run.frozen_s) == (False, None, None)
    assert (run.holds.total_s, len(run.holds.each_s)) == (4.0, 1)


def test_a_held_run_stands_still_while_more_is_not_enough(enforcer: GrantEnforcer) -> None:
    """It had gone far past its mark. It was served, so its wait begins again; its hold does not."""
    run = held(140 * MIB)

    enforcer.set_grant(run, 132 * MIB, 4.0)
    assert (pen_of(run).frozen, run.held_since_s, run.frozen_s) == (True, 4.0, 0.0)
    assert run.held_s(5.0) == 5.0

    enforcer.set_grant(run, 164 * MIB, 6.0)
    assert (pen_of(run).frozen, run.holds.total_s) == (False, 6.0)


def test_the_same_grant_again_frees_nobody(enforcer: GrantEnforcer) -> None:
    """Only more is more."""
    run = held()

    enforcer.set_grant(run, 100 * MIB, 4.0)

    assert (pen_of(run).frozen, run.held_since_s) == (True, 0.0)


def test_nobody_who_ends_is_held(enforcer: GrantEnforcer) -> None:
    """It could not hear that it should; nor is one held that was granted nothing yet."""
    told, over, refused, fresh = (live(MARK) for _ in range(4))
    told.stop(stopping(RunEnd.TIMEOUT))
    over.record_exit(exited())
    refused.refuse(Refusal(errno.EIO, "x"), 0.0)
    for run in (told, over, refused):
        run.set_grant(100 * MIB, MARK)

    for run in (told, over, refused, fresh):
        run.measure()
        enforcer.enforce(run, 5.0)
        assert not pen_of(run).frozen


def test_at_its_own_limit_it_is_the_kernel_that_acts(enforcer: GrantEnforcer) -> None:
    """A run may use the last bytes of its `memory_limit`: held there, it would wait for ever for
    a grant that is no use to it.
    """
    limited = {"memory_limit_bytes": 100 * MIB}
    run = live(100 * MIB - 1, grant=100 * MIB + POLICY.arm_below_bytes, **limited)
    assert not pen_of(run).frozen

    below = held(**limited)
    enforcer.set_grant(below, 100 * MIB + POLICY.arm_below_bytes, 4.0)
    assert not pen_of(below).frozen

    cached = live(MIB, grant=100 * MIB + POLICY.arm_below_bytes, cache=99 * MIB, **limited)
    enforcer.receive_event(cached, 5.0)
    assert (cached.grant.cache_full, cached.grant.muted_until_s) == (False, 5.0 + MUTE_S)


def test_page_cache_is_dropped_in_a_thread_of_its_own(enforcer: GrantEnforcer) -> None:
    """Half of the way from what is used to the mark is left to it."""
    run = live(20 * MIB, grant=100 * MIB, cache=90 * MIB)
    run.set_cache_full(is_full=True)
    threads: list[threading.Thread] = []
    pen = pen_of(run)
    noted: Callable[[int], None] = pen.trim

    def trim(to_bytes: int) -> None:
        threads.append(threading.current_thread())
        noted(to_bytes)

    pen.trim = trim  # type: ignore[method-assign]
    enforcer.trim(run)
    enforcer.close()

    assert (pen.trims, run.grant.cache_full) == ([(20 * MIB + MARK) // 2], False)
    assert threads[0] is not threading.main_thread()
    assert not threads[0].is_alive()


def test_a_run_without_a_pen_is_left_alone(enforcer: GrantEnforcer) -> None:
    """It was refused before it had one."""
    run = LiveRun("R", job("a"), 1, Path("/runs"), 0.0)

    enforcer.receive_event(run, 1.0)
    enforcer.trim(run)
    run.hold(HELD, 1.0)
    run.release(1.0)

    assert run.held_since_s is None


def test_single_holds_are_kept_up_to_a_bound() -> None:
    """A run that grows for days is held millions of times; their sum is exact."""
    run = live(grant=100 * MIB)
    for _ in range(KEEP_HOLDS + 5):
        run.hold(HELD, 1.0)
        run.release(2.0)

    assert (len(run.holds.each_s), run.holds.total_s) == (KEEP_HOLDS, KEEP_HOLDS + 5.0)


@given(
    st.lists(
        st.tuples(st.integers(1, 400), st.integers(0, 500), st.booleans()),
        min_size=1, max_size=20,
    )
)  # fmt: skip
def test_who_goes_on_is_below_its_mark(
    reached: Reached, steps: list[tuple[int, int, bool]]
) -> None:
    """Whatever is granted, grown and freed, in any order: whoever is above its mark stands
    still after each look, pen and book agree, and a refused grant changes nothing.
    """
    enforcer, run, seen = GrantEnforcer(POLICY), live(), set[bool]()
    for at_s, (grant, used, give) in enumerate(steps, 1):
        if not pen_of(run).frozen:
            pen_of(run).used = used * MIB
        before = run.grant.grant_bytes
        if give:
            took = enforcer.set_grant(run, grant * MIB, float(at_s))
            assert run.grant.grant_bytes == (grant * MIB if took else before)
        else:
            run.measure()
            enforcer.enforce(run, float(at_s))
        assert (run.frozen_s is None) == (run.held_since_s is None) == (not pen_of(run).frozen)
        if run.grant.grant_bytes:
            seen.add(pen_of(run).frozen)
        if run.grant.grant_bytes and not pen_of(run).frozen:
            assert run.reading.used_bytes < run.grant.mark_bytes - POLICY.near_bytes
    reached(len(seen) == 2, "one that is held and goes on")
