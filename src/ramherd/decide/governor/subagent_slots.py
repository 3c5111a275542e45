"""Which subagent may start next.

A subagent lives inside the process of its session, so it does not grow grant by grant as a run
does: it gets its whole lease at once, its slot, or it waits. Sessions below their share of the
budget, and of `max_parallel`, come first; among them, the session that has waited longest since its
last slot, so that sessions take turns. A session without a slot is always below its share, so the
first waiting subagent needs only memory, and at least one always proceeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

# Settings that cap the subagents of one session: ours, and Claude Code's own.
OWN_CAP, CLAUDE_CAP = "max_parallel_session", "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS"
# Later than any time since boot.
FAR_S = 1e12


class SlotHolder(NamedTuple):
    """One application. `slots` are subagents that run or are about to; `since_s` and `need_bytes`
    belong to its oldest waiting subagent (a waiting herd has no need: any memory helps it).
    `leaving` are subagents that have ended, but that Claude still counts. `granted_s` is the time
    of its last slot.
    """

    owner: str
    bytes: int = 0
    slots: int = 0
    since_s: float | None = None
    need_bytes: int = 0
    is_hooked: bool = True
    leaving: int = 0
    granted_s: float = 0.0

    @property
    def turn_s(self) -> float:
        """The time since which it is the session's turn: each slot moves the session to the end."""
        return max(self.since_s or 0.0, self.granted_s)

    @property
    def is_active(self) -> bool:
        return self.is_hooked and (self.slots > 0 or self.since_s is not None)


class Caps(NamedTuple):
    """`budget_bytes` is for all applications, `hooked_bytes` for all hooked sessions together;
    `claude` is the number of subagents at which Claude Code itself refuses the next in a session.
    """

    budget_bytes: int
    hooked_bytes: int | None = None
    per_session: int | None = None
    in_all: int | None = None
    claude: int | None = None


class Share(NamedTuple):
    """One application's share of the budget and of `max_parallel`."""

    bytes: int
    slots: int | None = None


class SlotChoice(NamedTuple):
    """Whether the subagent may start, why, and how many run in its session and on the machine.
    `is_patient`: it waits only for others of its own session, however long these take.
    """

    reason: Reason
    need_bytes: int
    free_bytes: int
    in_session: int
    in_all: int
    is_patient: bool = False

    @property
    def is_yes(self) -> bool:
        return self.reason.why is Why.FITS

    @property
    def is_for_memory(self) -> bool:
        """Other applications leave memory to a subagent that waits for memory. A subagent that
        waits for a number to fall blocks no application.
        """
        return self.reason.why in (Why.NO_ROOM_BUDGET, Why.SOMEBODY_WAITS)


def choose_slot(
    mine: SlotHolder, others: Sequence[SlotHolder], caps: Caps, *, older_s: float | None = None
) -> SlotChoice:
    """`mine.since_s` and `mine.need_bytes` belong to the subagent that asks; another subagent of
    its session has waited since `older_s`.
    """
    everyone = [mine, *others]
    need, free = mine.need_bytes, free_bytes(everyone, caps)
    in_all = sum(holder.slots for holder in everyone)
    share = share_of(everyone, caps)
    first = sum(goes_first(other, mine, share) for other in others)
    is_younger = is_older(older_s, mine.since_s)
    is_patient = False
    reason = Reason(Why.FITS, need_bytes=need, have_bytes=free)
    if (own := full_cap(mine, caps)) is not None:
        reason, is_patient = own, True
    elif is_full(in_all, caps.in_all):
        reason = Reason(Why.MAX_PARALLEL, running=in_all, limit=caps.in_all or 0)
    elif need > free:
        budget = caps.budget_bytes
        reason = Reason(Why.NO_ROOM_BUDGET, need_bytes=need, budget_bytes=budget, have_bytes=free)
    elif first or is_younger:
        reason = Reason(Why.SOMEBODY_WAITS, waiting=first + is_younger)
        is_patient = not first
    return SlotChoice(reason, need, max(free, 0), mine.slots, in_all, is_patient)


def full_cap(mine: SlotHolder, caps: Caps) -> Reason | None:
    """The cap of the own session that is reached: ours, or Claude's."""
    counted = ((OWN_CAP, mine.slots, caps.per_session),
               (CLAUDE_CAP, mine.slots + mine.leaving, caps.claude))  # fmt: skip
    for setting, running, limit in counted:
        if is_full(running, limit):
            return Reason(Why.SUBAGENT_CAP, running=running, limit=limit or 0, setting=setting)
    return None


def is_own_cap(reason: Reason) -> bool:
    return reason.why is Why.SUBAGENT_CAP


def is_full(slots: int, most: int | None) -> bool:
    return most is not None and slots >= most


def is_older(other_s: float | None, mine_s: float | None) -> bool:
    return other_s is not None and mine_s is not None and other_s < mine_s


def free_bytes(everyone: Sequence[SlotHolder], caps: Caps) -> int:
    free = caps.budget_bytes - sum(holder.bytes for holder in everyone)
    if caps.hooked_bytes is None:
        return free
    hooked = sum(holder.bytes for holder in everyone if holder.is_hooked)
    return min(free, caps.hooked_bytes - hooked)


def goes_first(other: SlotHolder, mine: SlotHolder, share: Share) -> bool:
    return other.since_s is not None and place(other, share) < place(mine, share)


def share_of(everyone: Sequence[SlotHolder], caps: Caps) -> Share:
    share = caps.budget_bytes // len(everyone)
    if caps.hooked_bytes is not None:
        hooked = sum(holder.is_hooked for holder in everyone)
        share = min(share, caps.hooked_bytes // max(hooked, 1))
    if caps.in_all is None:
        return Share(share)
    return Share(share, caps.in_all // max(sum(holder.is_active for holder in everyone), 1))


def place(holder: SlotHolder, share: Share) -> tuple[bool, float, str]:
    """The lower one goes first."""
    if holder.is_hooked:
        is_above = holder.slots > 0 and (
            holder.bytes + holder.need_bytes > share.bytes or is_full(holder.slots, share.slots)
        )
    else:
        is_above = holder.bytes >= share.bytes
    return is_above, holder.turn_s, holder.owner


class Waiter(NamedTuple):
    """A waiting subagent. `is_capped`: it waits for another subagent of its own session to end."""

    owner: str
    call: str
    since_s: float
    need_bytes: int
    is_capped: bool = False


def order_waiters(
    waiters: Sequence[Waiter], holders: Sequence[SlotHolder], caps: Caps
) -> dict[tuple[str, str], int]:
    """The place in line of each waiting subagent, by owner and call: the order in which they start
    if none of them ends. A capped subagent has its place among those of its own session.
    """
    places: dict[tuple[str, str], int] = {}
    line = sorted((one for one in waiters if not one.is_capped), key=lambda one: one.since_s)
    known = {holder.owner: holder for holder in holders}
    while line:
        oldest: dict[str, Waiter] = {}
        for one in line:
            oldest.setdefault(one.owner, one)
        asking = [
            waiting(known.get(owner, SlotHolder(owner)), one) for owner, one in oldest.items()
        ]
        rest = [holder for owner, holder in known.items() if owner not in oldest]
        share = share_of([*asking, *rest], caps)
        first = min(asking, key=lambda holder: place(holder, share))
        one = oldest[first.owner]
        places[one.owner, one.call] = len(places) + 1
        known[first.owner] = first._replace(
            bytes=first.bytes + one.need_bytes,
            slots=first.slots + 1,
            granted_s=FAR_S + len(places),
        )
        line.remove(one)
    return {**places, **order_capped(waiters)}


def waiting(holder: SlotHolder, one: Waiter) -> SlotHolder:
    return holder._replace(since_s=one.since_s, need_bytes=one.need_bytes)


def order_capped(waiters: Sequence[Waiter]) -> dict[tuple[str, str], int]:
    places: dict[tuple[str, str], int] = {}
    for one in sorted(waiters, key=lambda one: one.since_s):
        if one.is_capped:
            ahead = sum(owner == one.owner for owner, _call in places)
            places[one.owner, one.call] = ahead + 1
    return places
