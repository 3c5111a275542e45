"""Which subagent may start next."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.reasons import Reason, Why
from ramherd.decide.governor.subagent_slots import (
    Caps,
    SlotChoice,
    SlotHolder,
    Waiter,
    choose_slot,
    order_waiters,
)
from support.reached import Reached

MIB = 1 << 20
NEED = 128 * MIB


def holder(owner: str, slots: int = 0, since_s: float | None = None, base: int = 0) -> SlotHolder:
    return SlotHolder(owner, base + slots * NEED, slots, since_s, NEED if since_s else 0)


def ask(
    mine: SlotHolder, *others: SlotHolder, room: int = 2, older_s: float | None = None
) -> SlotChoice:
    return choose_slot(mine, others, Caps(room * NEED), older_s=older_s)


def test_a_subagent_gets_its_whole_slot_or_none() -> None:
    """With one byte too little there is no room."""
    mine = holder("a", 1, 1.0)
    assert choose_slot(mine, [], Caps(2 * NEED)).is_yes
    assert choose_slot(mine, [], Caps(2 * NEED - 1)).reason.why is Why.NO_ROOM_BUDGET


def test_the_oldest_of_a_session_goes_first() -> None:
    """Subagents of one turn start in the order in which they were called."""
    assert ask(holder("a", 0, 2.0), older_s=1.0).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("a", 0, 1.0), older_s=2.0).is_yes


def test_the_older_waiter_of_two_sessions_goes_first() -> None:
    """If neither session has more than its share."""
    assert ask(holder("a", 0, 2.0), holder("b", 0, 1.0)).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("b", 0, 1.0), holder("a", 0, 2.0)).is_yes


def test_a_session_below_its_share_goes_before_an_older_waiter() -> None:
    """Otherwise the first of two large turns would keep all memory until its end."""
    many, none = holder("a", 1, 1.0), holder("b", 0, 2.0)
    assert ask(many, none).reason.why is Why.SOMEBODY_WAITS
    assert ask(none, many).is_yes


def test_who_waits_for_nothing_is_in_nobodys_way() -> None:
    """A session that has all it needs."""
    assert ask(holder("a", 0, 5.0), holder("b", 1)).is_yes


def test_a_herd_below_its_share_goes_first() -> None:
    """It takes the free memory at its next check; above its share it has to wait."""
    herd = SlotHolder("run", NEED // 2, 0, 1.0, 0, is_hooked=False)
    assert ask(holder("a", 0, 2.0), herd).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("a", 0, 2.0), herd._replace(bytes=NEED)).is_yes


def test_numbers_may_be_capped_too() -> None:
    """Per session, and in total; a subagent that waits for a number to fall needs no memory."""
    mine, other = holder("a", 2, 1.0), holder("b", 3)
    own = choose_slot(mine, [other], Caps(99 * NEED, per_session=2))
    everybody = choose_slot(mine, [other], Caps(99 * NEED, in_all=5))
    assert (own.reason.why, own.is_for_memory, own.is_patient) == (Why.SUBAGENT_CAP, False, True)
    assert (everybody.reason.why, everybody.is_for_memory) == (Why.MAX_PARALLEL, False)
    assert not everybody.is_patient
    assert choose_slot(mine, [other], Caps(99 * NEED, per_session=3, in_all=6)).is_yes


def test_other_applications_leave_memory_to_who_waits_for_it() -> None:
    """There is no memory, or another application comes first."""
    assert ask(holder("a", 2, 1.0)).is_for_memory
    assert ask(holder("a", 0, 2.0), older_s=1.0).is_for_memory


def test_one_that_waits_for_its_own_session_is_patient() -> None:
    """Not if another session comes first, or if there is no memory."""
    assert ask(holder("a", 0, 2.0), older_s=1.0).is_patient
    assert not ask(holder("a", 0, 3.0), holder("b", 0, 1.0), older_s=2.0).is_patient
    assert not ask(holder("a", 2, 1.0), older_s=0.5).is_patient
    assert not ask(holder("a", 0, 1.0)).is_patient


def test_claudes_own_cap_counts_those_that_it_has_not_forgotten() -> None:
    """Claude refuses one more than its cap: it counts a subagent a moment longer than we do."""
    mine = holder("a", 2, 1.0)._replace(leaving=1)
    full = choose_slot(mine, [], Caps(99 * NEED, claude=3))
    assert full.reason == Reason(
        Why.SUBAGENT_CAP, running=3, limit=3, setting="CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS"
    )
    assert choose_slot(mine, [], Caps(99 * NEED, claude=4)).is_yes
    assert choose_slot(mine, [], Caps(99 * NEED, per_session=3)).is_yes


def test_two_sessions_take_turns_under_max_parallel() -> None:
    """A session that has its share of `max_parallel` waits for one that has not."""
    caps = Caps(99 * NEED, in_all=2)
    many, none = holder("a", 1, 1.0), holder("b", 0, 2.0)
    assert choose_slot(many, [none], caps).reason == Reason(Why.SOMEBODY_WAITS, waiting=1)
    assert choose_slot(none, [many], caps).is_yes


def test_sessions_that_do_nothing_have_no_share_of_max_parallel() -> None:
    """Nor does a herd: two of five sessions share four slots."""
    caps, idle = Caps(99 * NEED, in_all=4), [holder("c"), holder("d")]
    herd = SlotHolder("run", NEED, is_hooked=False)
    mine, other = holder("a", 1, 1.0), holder("b", 1, 2.0)
    assert choose_slot(mine, [other, *idle, herd], caps).is_yes
    above = choose_slot(mine._replace(slots=2), [other, *idle, herd], caps)
    assert above.reason.why is Why.SOMEBODY_WAITS


def test_a_session_that_only_runs_subagents_has_its_share() -> None:
    """A session with running subagents counts when slots are shared, even if it does not wait."""
    caps = Caps(99 * NEED, in_all=5)
    mine, other, busy = holder("a", 1, 1.0), holder("b", 0, 2.0), holder("c", 2)
    assert choose_slot(mine, [other, busy], caps).reason.why is Why.SOMEBODY_WAITS
    assert choose_slot(mine, [other, holder("c")], caps).is_yes


def test_of_equals_the_one_served_longest_ago_is_next() -> None:
    """With room for a single subagent, no session has a slot when the next one is chosen."""
    served, other = holder("a", 0, 1.0)._replace(granted_s=3.0), holder("b", 0, 2.0)
    assert ask(served, other, room=1).reason.why is Why.SOMEBODY_WAITS
    assert ask(other, served, room=1).is_yes
    assert ask(served, other._replace(granted_s=4.0), room=1).is_yes


def test_the_place_in_line_follows_the_turns() -> None:
    """Two sessions alternate; the oldest subagent of each goes first."""
    line = [Waiter("a", f"a{n}", 9.0 - n, NEED) for n in (3, 1, 2)]
    line += [Waiter("b", f"b{n}", 12.0 - n, NEED) for n in (1, 2)]
    caps = Caps(99 * NEED, in_all=2)
    places = order_waiters(line, [holder("a", 2), holder("b")], caps)
    assert sorted(places, key=lambda key: places[key]) == [
        ("b", "b2"), ("a", "a3"), ("b", "b1"), ("a", "a2"), ("a", "a1"),
    ]  # fmt: skip
    assert sorted(places.values()) == [1, 2, 3, 4, 5]
    equal = order_waiters(line, [holder("a"), holder("b"), holder("c", 1)], Caps(99 * NEED))
    order = sorted(equal, key=lambda key: equal[key])
    assert order == [("a", "a3"), ("b", "b2"), ("a", "a2"), ("b", "b1"), ("a", "a1")]
    # For an owner without a lease, only the wait is known.
    assert order_waiters([Waiter("x", "x1", 1.0, NEED)], [], Caps(NEED)) == {("x", "x1"): 1}


def test_the_one_that_has_waited_longest_is_the_first_in_line() -> None:
    """Of sessions that have had no slot yet."""
    line = [Waiter("a", "a1", 5.0, NEED), Waiter("b", "b1", 1.0, NEED)]
    assert order_waiters(line, [], Caps(99 * NEED)) == {("b", "b1"): 1, ("a", "a1"): 2}


def test_slots_that_are_given_count_for_the_next_place() -> None:
    """A session below its share of `max_parallel` comes first until it has its share."""
    line = [Waiter("a", f"a{n}", 5.0 + n, NEED) for n in range(4)]
    line += [Waiter("b", "b", 1.0, NEED)]
    places = order_waiters(line, [holder("a"), holder("b", 3)], Caps(99 * NEED, in_all=6))
    order = [call for _owner, call in sorted(places, key=lambda key: places[key])]
    assert order == ["a0", "a1", "a2", "b", "a3"]


def test_a_herd_has_no_share_of_max_parallel() -> None:
    """The only session has all of it."""
    herd = SlotHolder("run", 0, 0, 2.0, 0, is_hooked=False)
    assert choose_slot(holder("a", 2, 1.0), [herd], Caps(99 * NEED, in_all=4)).is_yes


def test_memory_that_is_given_counts_for_the_next_place() -> None:
    """A session is above its share once the memory that it waits for is counted."""
    line = [Waiter("a", "a1", 1.0, 3 * NEED), Waiter("a", "a2", 2.0, 3 * NEED)]
    line += [Waiter("b", f"b{n}", 3.0 + n, NEED) for n in (1, 2, 3)]
    places = order_waiters(line, [holder("a"), holder("b")], Caps(8 * NEED))
    order = [call for _owner, call in sorted(places, key=lambda key: places[key])]
    assert order == ["a1", "b1", "b2", "b3", "a2"]


def test_one_that_is_capped_has_its_place_in_its_own_session() -> None:
    """Other sessions pass it, whenever they came."""
    line = [
        Waiter("a", "a1", 2.0, NEED, is_capped=True), Waiter("a", "a2", 1.0, NEED, is_capped=True),
        Waiter("b", "b1", 3.0, NEED, is_capped=True), Waiter("c", "c1", 4.0, NEED),
    ]  # fmt: skip
    assert order_waiters(line, [], Caps(NEED)) == {
        ("a", "a2"): 1, ("a", "a1"): 2, ("b", "b1"): 1, ("c", "c1"): 1,
    }  # fmt: skip


def test_the_budget_of_hooked_sessions_does_not_count_herds() -> None:
    """`budget` caps an application; a herd has its own."""
    herd = SlotHolder("run", 9 * NEED, is_hooked=False)
    caps = Caps(20 * NEED, hooked_bytes=2 * NEED)
    assert choose_slot(holder("a", 1, 1.0), [herd], caps).is_yes
    assert (
        choose_slot(holder("a", 1, 1.0), [herd, holder("b", 1)], caps).reason.why
        is Why.NO_ROOM_BUDGET
    )


def test_the_reason_has_the_numbers_that_were_compared() -> None:
    """The needed bytes and the rest of the budget; the choice has how many subagents run."""
    choice = choose_slot(holder("a", 1, 1.0), [holder("b", 2)], Caps(3 * NEED + 5))
    assert choice.reason == Reason(
        Why.NO_ROOM_BUDGET, need_bytes=NEED, budget_bytes=3 * NEED + 5, have_bytes=5
    )
    assert (choice.in_session, choice.in_all) == (1, 3)


def test_a_choice_has_its_numbers() -> None:
    """The needed bytes, the free bytes, never below zero, and how many run."""
    fits = Reason(Why.FITS, need_bytes=NEED, have_bytes=NEED)
    assert choose_slot(holder("a", 1, 1.0), [holder("b", 2)], Caps(4 * NEED)) == SlotChoice(
        fits, NEED, NEED, 1, 3
    )
    assert choose_slot(holder("a", 1, 1.0), [], Caps(0)).free_bytes == 0


def test_a_cap_is_told_with_how_many_run() -> None:
    """Also for a cap of zero."""
    mine, other = holder("a", 2, 1.0), holder("b", 3)

    def reason(caps: Caps, mine: SlotHolder = mine, *others: SlotHolder) -> Reason:
        return choose_slot(mine, others, caps).reason

    many = 99 * NEED
    own = {"setting": "max_parallel_session"}
    assert reason(Caps(many, per_session=2), mine, other) == Reason(
        Why.SUBAGENT_CAP, running=2, limit=2, **own
    )
    assert reason(Caps(many, in_all=5), mine, other) == Reason(Why.MAX_PARALLEL, running=5, limit=5)
    none = Reason(Why.MAX_PARALLEL, running=0, limit=0)
    assert reason(Caps(many, per_session=0), holder("a", 0, 1.0)) == Reason(
        Why.SUBAGENT_CAP, running=0, limit=0, **own
    )
    assert reason(Caps(many, in_all=0), holder("a", 0, 1.0)) == none


def test_all_that_go_first_are_counted() -> None:
    """From other sessions, and one of its own; a subagent that has waited as long is not older."""
    two = ask(holder("a", 0, 3.0), holder("b", 0, 1.0), older_s=2.0, room=9)

    assert two.reason == Reason(Why.SOMEBODY_WAITS, waiting=2)
    assert ask(holder("a", 0, 3.0), older_s=3.0).is_yes


def test_a_session_without_a_slot_is_below_its_share() -> None:
    """However much its own process holds; with slots, up to its share to the byte."""
    young = holder("b", 0, 2.0)

    assert ask(holder("a", 0, 1.0, base=3 * NEED), young, room=6).is_yes
    assert ask(holder("a", 1, 1.0), young, room=20).is_yes
    assert ask(holder("a", 1, 1.0), young, room=4).is_yes


def test_the_first_moment_is_a_moment() -> None:
    """A session that began to wait at 0.0 s has waited longest: 0.0 does not mean "not waiting"."""
    assert ask(SlotHolder("a", 0, 0, 0.0, NEED), holder("b", 0, 0.5)).is_yes


def test_a_herds_share_is_whole_bytes_of_the_smaller_budget() -> None:
    """Only hooked sessions share the budget of hooked sessions."""
    herd = SlotHolder("run", NEED, 0, 1.0, 0, is_hooked=False)
    mine, other = holder("a", 0, 2.0), holder("b")

    assert choose_slot(mine, [herd], Caps(2 * NEED + 1)).is_yes
    assert choose_slot(mine, [herd, other], Caps(30 * NEED, hooked_bytes=2 * NEED + 1)).is_yes
    alone = choose_slot(mine, [herd], Caps(30 * NEED, hooked_bytes=2 * NEED))
    assert alone.reason.why is Why.SOMEBODY_WAITS


WAITERS = st.lists(
    st.builds(
        holder, st.uuids().map(str), st.integers(0, 4), st.floats(1, 1000), st.integers(0, 3 * NEED)
    ),
    min_size=1, max_size=8, unique_by=lambda one: one.owner,
)  # fmt: skip


@given(WAITERS, st.integers(0, 40))
def test_somebody_goes_on_whenever_there_is_room(
    reached: Reached, waiting: list[SlotHolder], room: int
) -> None:
    """Exactly one waiting subagent is admitted if a slot is free, and none otherwise."""
    caps = Caps(room * NEED)
    free = caps.budget_bytes - sum(one.bytes for one in waiting)
    let_in = [
        one
        for one in waiting
        if choose_slot(one, [other for other in waiting if other != one], caps).is_yes
    ]
    reached(free >= NEED and len(waiting) > 1, "a slot that several wait for")
    reached(free < NEED, "no slot")
    assert len(let_in) == (1 if free >= NEED else 0)
