"""Who may start a subagent next."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.reasons import Reason, Why
from ramherd.decide.governor.subagent_slots import Caps, SlotChoice, SlotHolder, choose_slot
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
    """One byte short is no room."""
    mine = holder("a", 1, 1.0)
    assert choose_slot(mine, [], Caps(2 * NEED)).is_yes
    assert choose_slot(mine, [], Caps(2 * NEED - 1)).reason.why is Why.NO_ROOM_BUDGET


def test_the_oldest_of_a_session_goes_first() -> None:
    """Subagents of one turn start in the order in which they were called."""
    assert ask(holder("a", 0, 2.0), older_s=1.0).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("a", 0, 1.0), older_s=2.0).is_yes


def test_the_older_waiter_of_two_sessions_goes_first() -> None:
    """Where neither has more than its share."""
    assert ask(holder("a", 0, 2.0), holder("b", 0, 1.0)).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("b", 0, 1.0), holder("a", 0, 2.0)).is_yes


def test_a_session_below_its_share_goes_before_an_older_waiter() -> None:
    """Otherwise the first of two large turns would have everything until its end."""
    many, none = holder("a", 1, 1.0), holder("b", 0, 2.0)
    assert ask(many, none).reason.why is Why.SOMEBODY_WAITS
    assert ask(none, many).is_yes


def test_who_waits_for_nothing_is_in_nobodys_way() -> None:
    """A session that has what it wants."""
    assert ask(holder("a", 0, 5.0), holder("b", 1)).is_yes


def test_a_herd_below_its_share_goes_first() -> None:
    """It takes what there is at its next look; above its share it has to wait."""
    herd = SlotHolder("run", NEED // 2, 0, 1.0, 0, is_hooked=False)
    assert ask(holder("a", 0, 2.0), herd).reason.why is Why.SOMEBODY_WAITS
    assert ask(holder("a", 0, 2.0), herd._replace(bytes=NEED)).is_yes


def test_numbers_may_be_capped_too() -> None:
    """In a session, and in all; one kept by its own session alone is in nobody's way."""
    mine, other = holder("a", 2, 1.0), holder("b", 3)
    own = choose_slot(mine, [other], Caps(99 * NEED, per_session=2))
    everybody = choose_slot(mine, [other], Caps(99 * NEED, in_all=5))
    assert (own.reason.why, own.is_queued) == (Why.MAX_PARALLEL, False)
    assert (everybody.reason.why, everybody.is_queued) == (Why.MAX_PARALLEL, True)
    assert choose_slot(mine, [other], Caps(99 * NEED, per_session=3, in_all=6)).is_yes


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
    """What it needs and what the budget has left; the choice tells how many run."""
    choice = choose_slot(holder("a", 1, 1.0), [holder("b", 2)], Caps(3 * NEED + 5))
    assert choice.reason == Reason(
        Why.NO_ROOM_BUDGET, need_bytes=NEED, budget_bytes=3 * NEED + 5, have_bytes=5
    )
    assert (choice.in_session, choice.in_all) == (1, 3)


def test_a_choice_has_its_numbers() -> None:
    """What it needs, what is free, never less than nothing, and how many run."""
    fits = Reason(Why.FITS, need_bytes=NEED, have_bytes=NEED)
    assert choose_slot(holder("a", 1, 1.0), [holder("b", 2)], Caps(4 * NEED)) == SlotChoice(
        fits, NEED, NEED, 1, 3
    )
    assert choose_slot(holder("a", 1, 1.0), [], Caps(0)).free_bytes == 0


def test_a_cap_is_told_with_how_many_run() -> None:
    """A cap of none as well."""
    mine, other = holder("a", 2, 1.0), holder("b", 3)

    def reason(caps: Caps, mine: SlotHolder = mine, *others: SlotHolder) -> Reason:
        return choose_slot(mine, others, caps).reason

    many = 99 * NEED
    assert reason(Caps(many, per_session=2), mine, other) == Reason(
        Why.MAX_PARALLEL, running=2, limit=2
    )
    assert reason(Caps(many, in_all=5), mine, other) == Reason(Why.MAX_PARALLEL, running=5, limit=5)
    none = Reason(Why.MAX_PARALLEL, running=0, limit=0)
    assert reason(Caps(many, per_session=0), holder("a", 0, 1.0)) == none
    assert reason(Caps(many, in_all=0), holder("a", 0, 1.0)) == none


def test_all_that_go_first_are_counted() -> None:
    """Of other sessions, and one of its own; one that has waited as long is not older."""
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
    """That of hooked sessions is shared by these alone."""
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
    """Of all that wait exactly one is let in if a slot is free, and nobody if none is."""
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
