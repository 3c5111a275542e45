"""Calm, tight, single: the signs of a level, how long it lasts, and how often it changes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ramherd.core.memory import MB, Estimate, History, Level, Scene, SetLevel
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.govern import govern
from ramherd.decide.governor.levels import (
    find_debt,
    find_level,
    find_single,
    find_tight,
    is_on,
    is_pressed,
    lasting_s,
    next_debt_since,
    next_level,
)
from ramherd.decide.governor.room import Room
from unit.decide.governor.scenes import pen, scene, waiting_job

POLICY = GrantPolicy()
HUNDRED = {"": Estimate(100 * MB, MB)}


def test_a_gate_has_two_marks() -> None:
    """On at the first mark, off below the second."""
    marks = (0.9, 0.75)

    assert is_on(0.9, marks, was_on=False)
    assert not is_on(0.89, marks, was_on=False)
    assert is_on(0.75, marks, was_on=True)
    assert not is_on(0.74, marks, was_on=True)


def test_pressure_and_swapping_press() -> None:
    """From their second marks on."""
    at = scene(100)

    assert not is_pressed(replace(at, memory_pressure=0.099), POLICY)
    assert is_pressed(replace(at, memory_pressure=0.1), POLICY)
    swap = POLICY.swap_in_marks[1]
    assert is_pressed(replace(at, swap_in_bytes_per_s=swap), POLICY)
    assert not is_pressed(replace(at, swap_in_bytes_per_s=swap - 1), POLICY)


def test_what_runs_one_at_a_time() -> None:
    """A budget below two bases, three failed starts, a debt of ten seconds: each with numbers."""
    at = replace(scene(200, queue=[waiting_job(1)]), estimates=HUNDRED)

    assert find_single(at, History(), POLICY) is None
    small = replace(at, lease_bytes=200 * MB - 1)
    assert find_single(small, History(), POLICY) == Reason(
        Why.SMALL_BUDGET, budget_bytes=200 * MB - 1, base_bytes=100 * MB
    )
    assert find_single(replace(small, ending_bytes=1), History(), POLICY) is None
    single = History(level=Level.SINGLE)
    assert find_single(replace(at, lease_bytes=250 * MB - 1), single, POLICY) is not None
    assert find_single(replace(at, lease_bytes=250 * MB), single, POLICY) is None
    assert find_single(scene(0), History(), POLICY) is None
    failed = replace(scene(900), failed_starts=3)
    assert find_single(failed, History(), POLICY) == Reason(Why.FAILED_STARTS, starts=3)
    assert find_single(replace(failed, failed_starts=2), History(), POLICY) is None
    debt = scene(100, pen("r1", 1, 70), pen("r2", 1, 80))
    assert find_single(debt, History(debt_since_s=90.0), POLICY) is not None
    assert find_single(debt, History(debt_since_s=90.1), POLICY) is None


def test_a_small_lease_is_no_small_budget() -> None:
    """The possible lease counts: with nothing running, the application has asked for little."""
    at = replace(scene(10, queue=[waiting_job(1)]), estimates=HUNDRED)

    assert find_single(replace(at, budget_bytes=200 * MB), History(), POLICY) is None
    assert find_single(replace(at, budget_bytes=200 * MB - 1), History(), POLICY) == Reason(
        Why.SMALL_BUDGET, budget_bytes=200 * MB - 1, base_bytes=100 * MB
    )


def test_a_small_budget_stays_small_when_the_last_job_has_started() -> None:
    """It does not become calm when no job waits any more, but only a waiting job can begin it."""
    at = replace(scene(150, pen("r1", 90, 100), pen("r2", 1, 1)), estimates=HUNDRED)

    assert find_single(at, History(level=Level.SINGLE), POLICY) is not None
    assert find_single(at, History(level=Level.TIGHT), POLICY) is None
    roomy = replace(at, budget_bytes=250 * MB)
    assert find_single(roomy, History(level=Level.SINGLE), POLICY) is None


def test_a_debt_counts_when_it_has_lasted() -> None:
    """The reason has the granted bytes and the lease."""
    at = scene(100, pen("r1", 1, 70), pen("r2", 1, 80))

    assert find_debt(at, History(), 1.0) is None
    assert find_debt(at, History(debt_since_s=99.1), 1.0) is None
    assert find_debt(at, History(debt_since_s=99.0), 1.0) == Reason(
        Why.DEBT, granted_bytes=150 * MB, lease_bytes=100 * MB
    )


def test_what_makes_it_tight() -> None:
    """Debt, a failed start, pressure, swapping: the first is named, with its numbers."""

    def tight(
        level: Level = Level.CALM, debt_since_s: float | None = None, **changes: float
    ) -> Reason | None:
        at = replace(scene(99, pen("r1", 1, 100)), **changes)  # type: ignore[arg-type]
        return find_tight(at, History(level=level, debt_since_s=debt_since_s), POLICY)

    assert tight() is None
    assert tight(debt_since_s=99.1) is None
    assert tight(debt_since_s=99.0, failed_starts=1) == Reason(
        Why.DEBT, granted_bytes=100 * MB, lease_bytes=99 * MB
    )
    assert tight(failed_starts=1) == Reason(Why.FAILED_STARTS, starts=1)
    assert tight(memory_pressure=0.20049) == Reason(Why.MEMORY_PRESSURE, pressure=0.2)
    assert tight(memory_pressure=0.20149) == Reason(Why.MEMORY_PRESSURE, pressure=0.201)
    assert tight(memory_pressure=0.19) is None
    assert tight(Level.TIGHT, memory_pressure=0.19) is not None
    assert tight(Level.SINGLE, memory_pressure=0.09) is None
    swap = 4.0 * (1 << 20)
    assert tight(swap_in_bytes_per_s=swap + 0.5) == Reason(Why.SWAP_IN, swap_in_bytes=int(swap))
    assert tight(swap_in_bytes_per_s=swap - 1) is None
    assert tight(Level.TIGHT, swap_in_bytes_per_s=swap - 1) is not None


def test_the_sternest_level_holds() -> None:
    """Single before tight before calm."""
    at = scene(900, pen("r1", 1, 100))

    def level(failed_starts: int = 0) -> tuple[Level, Reason]:
        return find_level(replace(at, failed_starts=failed_starts), History(), POLICY)

    assert level() == (Level.CALM, Reason(Why.CALM))
    assert level(1) == (Level.TIGHT, Reason(Why.FAILED_STARTS, starts=1))
    assert level(3) == (Level.SINGLE, Reason(Why.FAILED_STARTS, starts=3))


def test_debt_is_counted_from_its_first_look() -> None:
    """It is forgotten when it is paid."""
    at = scene(99, pen("r1", 1, 100))

    assert next_debt_since(at, History(), Room(at, POLICY)) == 100.0
    assert next_debt_since(at, History(debt_since_s=7.0), Room(at, POLICY)) == 7.0
    paid = replace(at, lease_bytes=100 * MB)
    assert next_debt_since(paid, History(debt_since_s=7.0), Room(paid, POLICY)) is None


def test_a_debt_that_is_paid_at_once_is_none() -> None:
    """Idle grants are taken first: a budget that falls slowly never adds up to a debt."""
    history = History()
    for at_s in range(100, 120):
        at = scene(900 - at_s, pen("r1", 100, 1000 - at_s), at_s=float(at_s))
        history, _ = govern(at, history, POLICY)

    assert (history.debt_since_s, history.level) == (None, Level.CALM)


def look(history: History, at_s: float, failed_starts: int = 0) -> tuple[History, Reason]:
    at = replace(scene(900, at_s=at_s), failed_starts=failed_starts)
    return next_level(at, history, Room(at, POLICY), POLICY)


def test_a_level_lasts_longer_than_its_sign() -> None:
    """Five seconds after its last sign it falls to the level that is called for then."""
    history, why = look(History(), 100.0, failed_starts=3)
    assert (history.level, why) == (Level.SINGLE, Reason(Why.FAILED_STARTS, starts=3))

    history, _ = look(history, 104.9, failed_starts=1)
    assert history.level is Level.SINGLE
    history, why = look(history, 105.0, failed_starts=1)
    assert (history.level, why) == (Level.TIGHT, Reason(Why.FAILED_STARTS, starts=1))
    assert look(history, 109.9)[0].level is Level.TIGHT
    history, _ = look(history, 109.0, failed_starts=1)
    history, _ = look(history, 113.9)
    assert history.level is Level.TIGHT
    history, why = look(history, 114.0)
    assert (history.level, why) == (Level.CALM, Reason(Why.CALM))


def test_a_sterner_level_begins_at_once() -> None:
    """Whatever the level was, and for however long."""
    history, _ = look(History(), 100.0, failed_starts=1)
    history, _ = look(history, 100.1, failed_starts=3)

    assert history.level is Level.SINGLE


@pytest.mark.parametrize(("pause_s", "lasts_s"), [(59.9, 30.0), (60.0, 5.0)])
def test_a_level_that_comes_back_soon_lasts_longer(pause_s: float, lasts_s: float) -> None:
    """Within a minute of its end. A level that rises or falls meanwhile is the same trouble."""
    history, _ = look(History(), 100.0, failed_starts=1)
    assert lasting_s(history, POLICY) == 5.0
    history, _ = look(history, 105.0)
    history, _ = look(history, 105.0 + pause_s, failed_starts=1)
    assert lasting_s(history, POLICY) == lasts_s
    history, _ = look(history, 106.0 + pause_s, failed_starts=3)
    assert lasting_s(history, POLICY) == lasts_s

    assert look(history, 105.9 + pause_s + lasts_s)[0].level is Level.SINGLE
    assert look(history, 106.0 + pause_s + lasts_s)[0].level is Level.CALM


def count_changes(scene_at: Callable[[float], Scene], *, seconds: int = 68) -> int:
    """Changes of the level, with two checks a second."""
    history, changes = History(), 0
    for tick in range(2 * seconds):
        history, actions = govern(scene_at(tick / 2), history, POLICY)
        changes += sum(isinstance(action, SetLevel) for action in actions)
    return changes


@pytest.mark.parametrize("period_s", [2, 3, 4, 4.5, 6, 8, 9, 11, 12, 15, 18, 25, 30, 34, 45])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_hog_outside_changes_the_level_four_times_at_most(period_s: float, share: float) -> None:
    """It repeatedly takes and releases 3 GB: meanwhile the oldest run alone does not fit, and
    processes wait for memory. A program that stays for 10 s each time also causes the single level,
    with two more changes.
    """
    most = 4 if share * period_s <= POLICY.single_debt_s else 6

    def scene_at(at_s: float) -> Scene:
        is_there = at_s % period_s < share * period_s
        at = scene(500 if is_there else 3500, pen("r1", 700, 700), at_s=at_s)
        return replace(at, queue=[waiting_job(2)], memory_pressure=0.3 if is_there else 0.0)

    assert 1 <= count_changes(scene_at) <= most
