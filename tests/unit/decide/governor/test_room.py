"""The bytes of one lease in one round, and the growth and shrinking that use them."""

from dataclasses import replace

import pytest

from ramherd.core.memory import MB, Grant, History, Penned, Trim
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.growth import (
    grow,
    is_short,
    make_cache_room,
    next_grown,
    next_idle,
    pay_debt,
    shrink,
    useful,
    waiters,
)
from ramherd.decide.governor.room import Room, is_at_work, oldest_first
from unit.decide.governor.scenes import held, pen, scene

POLICY = GrantPolicy()
WHY = Reason(Why.CALM)
SLIM, QUANTUM = POLICY.slim_bytes, POLICY.quantum_bytes


def test_what_is_not_granted_is_free_and_less_than_nothing_is_debt() -> None:
    """To the byte."""
    run = pen("r1", 100, 300)

    assert (Room(scene(500, run), POLICY).free_bytes) == 200 * MB
    assert Room(scene(500, run), POLICY).debt_bytes == 0
    assert Room(scene(200, run), POLICY).debt_bytes == 100 * MB


def test_lowering_frees_what_it_takes() -> None:
    """A grant that would rise is left alone."""
    run = pen("r1", 100, 300)
    room = Room(scene(500, run), POLICY)

    assert room.lower(run, 300 * MB, WHY) == 0
    assert room.lower(run, 301 * MB, WHY) == 0
    assert room.lowered == {}
    assert Room(scene(500, run), POLICY).lower(run, 300 * MB - 1, WHY) == 1
    assert room.lower(run, 250 * MB, WHY) == 50 * MB
    assert (room.free_bytes, room.grants) == (250 * MB, {"r1": 250 * MB})
    assert room.lowered == {"r1": Grant("r1", 250 * MB, WHY)}


def test_growing_takes_from_what_is_free() -> None:
    """The action has the new grant."""
    run = pen("r1", 100, 300)
    room = Room(scene(500, run), POLICY)
    room.grow(run, 50 * MB, WHY)

    assert (room.free_bytes, room.grants) == (150 * MB, {"r1": 350 * MB})
    assert room.raised == {"r1": Grant("r1", 350 * MB, WHY)}


def test_room_is_made_only_where_too_little_is_free() -> None:
    """Only the missing bytes, from idle memory, down to the used bytes plus a margin."""
    run = pen("r1", 100, 300)
    room = Room(scene(400, run), POLICY)

    assert room.make(100 * MB) == 100 * MB
    assert room.lowered == {}
    assert room.make(150 * MB) == 150 * MB
    assert room.lowered == {
        "r1": Grant("r1", 250 * MB, Reason(Why.GIVES_ROOM, used_bytes=100 * MB))
    }
    assert room.make(900 * MB) == 300 * MB - SLIM
    assert room.grants == {"r1": 100 * MB + SLIM}
    assert Room(scene(100, pen("r1", 300, 300)), POLICY).make(MB) == 0


def test_grown_runs_give_before_young_ones() -> None:
    """A young run is about to use its grant; it gives after the grown ones have."""
    runs = (pen("r1", 0, 200, started_s=80.0), pen("r2", 0, 200, started_s=80.1))
    room = Room(scene(400, *runs), POLICY)

    room.make(100 * MB)
    assert set(room.lowered) == {"r1"}
    room.make(300 * MB)
    assert room.grants == {"r1": SLIM, "r2": 100 * MB - SLIM}


def test_what_is_promised_held_or_leaving_is_not_idle() -> None:
    """None of it is given to another run."""
    runs = (
        pen("r1", 100, 300, promised_bytes=300 * MB),
        held("r2", 300, 99, used_bytes=100 * MB),
        pen("r3", 100, 300, leaving=True),
        pen("r4", 292, 300),
    )

    assert Room(scene(1200, *runs), POLICY).make(MB) == 0
    assert [is_at_work(run) for run in runs] == [True, False, False, True]


def test_the_oldest_come_first() -> None:
    """By priority, then by the first start of the job, then by its place."""
    runs = [pen("r3", 1, 1), pen("r1", 1, 1), pen("r2", 1, 1, priority=1)]

    assert [run.run for run in oldest_first(runs)] == ["r2", "r1", "r3"]


def test_waiters_are_held_and_stay() -> None:
    """The oldest first."""
    runs = (held("r2", 9, 1), held("r1", 9, 1), held("r3", 9, 1, leaving=True), pen("r4", 9, 9))

    assert [run.run for run in waiters(scene(100, *runs))] == ["r1", "r2"]


def grown(lease_mb: float, *runs: Penned, short_s: float | None = None) -> dict[str, int]:
    """The growth of each run."""
    at = scene(lease_mb, *runs)
    room = Room(at, POLICY)
    refused = grow(waiters(at), History(short_s=short_s), room, POLICY)
    assert refused == (len(room.raised) < (len(runs) if short_s is None else 1))
    before = {run.run: run.grant_bytes for run in runs}
    return {name: one.grant_bytes - before[name] for name, one in room.raised.items()}


STEP = QUANTUM + POLICY.arm_below_bytes + POLICY.near_bytes


def test_less_than_a_step_goes_to_the_first_alone() -> None:
    """If it is enough to get away from the mark; the last byte only goes to a run that is alone."""
    first, second = held("r1", 100, 99), held("r2", 100, 99)

    assert grown(200 + 2 * STEP / MB, first, second) == {"r1": STEP, "r2": STEP}
    assert grown(200 + (2 * STEP - 1) / MB, first, second) == {"r1": STEP}
    assert grown(200 + SLIM / MB, first, second) == {"r1": SLIM}
    assert grown(200 + (SLIM - 1) / MB, first, second) == {}
    assert grown(100.000001, first) == {"r1": 1}
    assert grown(100, first) == {}


def test_while_memory_is_short_only_the_first_waiter_grows() -> None:
    """For 2 s after growth was refused: otherwise half grown bursts would block each other."""
    first, second = held("r1", 100, 99), held("r2", 100, 99)

    assert grown(900, first, second, short_s=98.1) == {"r1": STEP}
    at = scene(900)
    assert is_short(at, History(short_s=98.1), POLICY)
    assert not is_short(at, History(short_s=98.0), POLICY)
    assert not is_short(at, History(), POLICY)


def beside_growing(lease_mb: float, *, grown_s: float = 99.9, short_s: float | None = None,
                   held_mb: float = 300) -> set[str]:  # fmt: skip
    """The runs that grow while an older one is between two quanta, 190 MB above its base."""
    at = scene(lease_mb, pen("r1", 400, 405), held("r2", held_mb, 99))
    room = Room(at, POLICY)
    assert not grow(waiters(at), History(short_s=short_s, grown_s={"r1": grown_s}), room, POLICY)
    return set(room.raised)


def test_a_run_between_two_quanta_keeps_its_turn() -> None:
    """It is not held, but another one would take the memory that it needs next. It counts for a
    quarter of a second after its last quantum.
    """
    assert beside_growing(2000, short_s=99.0) == set()
    assert beside_growing(2000, short_s=99.0, grown_s=99.75) == {"r2"}
    # The growth of this very round is not used yet.
    assert beside_growing(2000, short_s=99.0, grown_s=100.0) == {"r2"}
    # The run that has grown more is first, held or not.
    assert beside_growing(2000, short_s=99.0, held_mb=500) == {"r2"}


def test_beside_a_run_between_two_quanta_others_grow_if_it_could_take_as_much_again() -> None:
    """The same rule as beside a burst that is held."""
    base = 215
    needed = 405 + 300 + (405 - base) + STEP / MB
    assert beside_growing(needed) == {"r2"}
    assert beside_growing(needed - 0.001) == set()


def test_when_a_run_last_grew_is_known_for_as_long_as_a_burst_lasts() -> None:
    """7 s; a run that grows now has the present time."""
    at = scene(900, held("r1", 100, 99), pen("r2", 100, 200))
    room = Room(at, POLICY)
    nothing = History()
    assert next_grown(at, nothing, room, POLICY) is nothing.grown_s
    assert next_grown(at, History(grown_s={"r2": 93.1}), room, POLICY) == {"r2": 93.1}
    assert next_grown(at, History(grown_s={"r2": 93.0}), room, POLICY) == {}
    grow(waiters(at), nothing, room, POLICY)
    assert next_grown(at, History(grown_s={"r1": 94.0}), room, POLICY) == {"r1": 100.0}


def test_a_run_that_keeps_its_room_is_not_asked_for_it() -> None:
    """Neither when others need it nor when it has not been used for long."""
    at = scene(600, pen("r1", 100, 500), at_s=1000.0)
    room = Room(at, POLICY)
    room.kept = {"r1"}

    assert room.make(200 * MB) == 100 * MB
    shrink(at, History(idle_since_s={"r1": 900.0}), room, POLICY)
    assert room.lowered == {}


def test_growth_says_what_was_used_and_free() -> None:
    """With the memory that was free for it."""
    at = scene(150, held("r1", 100, 99))
    room = Room(at, POLICY)
    assert not grow(waiters(at), History(), room, POLICY)

    assert room.raised["r1"].reason == Reason(Why.GROWTH, used_bytes=100 * MB, free_bytes=STEP)
    below = held("r1", 100, 99, used_bytes=10 * MB)
    assert grown(900, below) == {"r1": QUANTUM}


def test_growth_beyond_the_limit_is_of_no_use() -> None:
    """Up to the mark above it, and one byte for a run that is already there."""
    run = held("r1", 100, 99, limit_bytes=110 * MB)
    room = Room(scene(900, run), POLICY)

    assert useful(run, 99 * MB, room, POLICY) == 10 * MB + POLICY.arm_below_bytes
    assert useful(run, 5, room, POLICY) == 5
    assert useful(replace(run, limit_bytes=None), 99 * MB, room, POLICY) == 99 * MB
    assert useful(replace(run, limit_bytes=MB), 99 * MB, room, POLICY) == 1


def test_page_cache_gets_what_nobody_wants_but_for_a_quantum() -> None:
    """To the byte; otherwise it is dropped. Each run is checked by itself."""
    cached = pen("r2", 100, 200, cache_bytes=100 * MB, cache_full=True)
    exact = 300 * MB + QUANTUM

    for lease, trimmed in ((exact, False), (exact - 1, True)):
        at = replace(scene(0, pen("r1", 1, 0), cached), lease_bytes=lease)
        room = Room(at, POLICY)
        trims = make_cache_room(at, room, POLICY)
        reason = Reason(Why.CACHE, used_bytes=100 * MB, cache_bytes=100 * MB)
        assert trims == ([Trim("r2", reason)] if trimmed else [])
        assert room.raised == ({} if trimmed else {"r2": Grant("r2", 300 * MB, reason)})


def test_a_grant_is_idle_since_it_was_first_seen_so() -> None:
    """Above the used bytes, the cache and the headroom."""
    edge = 100 * MB + POLICY.headroom_bytes
    idle = replace(pen("r1", 60, 0, cache_bytes=40 * MB), grant_bytes=edge + 1)
    at = scene(900, idle)

    assert next_idle(at, History(), POLICY) == {"r1": 100.0}
    assert next_idle(at, History(idle_since_s={"r1": 7.0, "r9": 1.0}), POLICY) == {"r1": 7.0}
    full = replace(at, runs=[replace(idle, grant_bytes=edge)])
    assert next_idle(full, History(), POLICY) == {}
    assert next_idle(replace(at, runs=[replace(idle, leaving=True)]), History(), POLICY) == {}


@pytest.mark.parametrize(
    ("since_s", "started_s", "shrinks"),
    [(95.0, 1.0, True), (95.1, 1.0, False), (95.0, 80.0, True), (95.0, 80.1, False)],
)
def test_an_idle_grant_shrinks_after_its_time(
    since_s: float, started_s: float, shrinks: bool
) -> None:
    """Five seconds, in runs that are not young; runs before it in the list are checked as well."""
    at = scene(900, pen("r0", 1, 1), pen("r1", 100, 300, started_s=started_s))
    room = Room(at, POLICY)
    shrink(at, History(idle_since_s={"r1": since_s}), room, POLICY)

    reason = Reason(Why.IDLE_GRANT, used_bytes=100 * MB, idle_s=5.0)
    to = Grant("r1", 100 * MB + POLICY.headroom_bytes, reason)
    assert room.lowered == ({"r1": to} if shrinks else {})


def test_an_idle_grant_shrinks_to_its_promise() -> None:
    """And to its page cache."""
    at = scene(900, pen("r1", 100, 300, promised_bytes=250 * MB))
    room = Room(at, POLICY)
    shrink(at, History(idle_since_s={"r1": 91.23456}), room, POLICY)

    assert room.grants == {"r1": 250 * MB}
    assert room.lowered["r1"].reason.numbers["idle_s"] == 8.765


def test_debt_takes_what_is_idle_promised_or_not() -> None:
    """From live runs; without debt nothing is taken."""
    run = pen("r1", 100, 300, promised_bytes=300 * MB)
    runs = (run, held("r2", 100, 99, used_bytes=MB), pen("r3", 1, 100, leaving=True))

    for lease_mb, lowered in ((499, {"r1"}), (500, set())):
        room = Room(scene(lease_mb, *runs), POLICY)
        pay_debt(scene(lease_mb, *runs), room, POLICY)
        assert set(room.lowered) == lowered
    room = Room(scene(499, *runs), POLICY)
    pay_debt(scene(499, *runs), room, POLICY)
    reason = Reason(Why.DEBT, granted_bytes=500 * MB, lease_bytes=499 * MB)
    assert room.lowered["r1"] == Grant("r1", 100 * MB + SLIM, reason)
