"""Which subagent may start next.

A subagent lives inside the process of its session, so it does not grow grant by grant as a run
does: it gets its whole lease at once, its slot, or it waits. Sessions below their share of the
budget come first, and of these the one that has waited longest. A session without a slot is always
below its share, so the first of all waiters needs nothing but memory, and one always goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence


class SlotHolder(NamedTuple):
    """One application. `slots` are subagents that run or are about to; `since_s` and `need_bytes`
    are those of its oldest waiter (a herd that waits has no need: any memory helps it).
    """

    owner: str
    bytes: int = 0
    slots: int = 0
    since_s: float | None = None
    need_bytes: int = 0
    is_hooked: bool = True


class Caps(NamedTuple):
    """`budget_bytes` is for all applications, `hooked_bytes` for all hooked sessions together."""

    budget_bytes: int
    hooked_bytes: int | None = None
    per_session: int | None = None
    in_all: int | None = None


class SlotChoice(NamedTuple):
    """Whether the subagent may start, why, and how many run in its session and on the machine. One
    that only `max_parallel_session` keeps from starting is not queued: others would wait for it.
    """

    reason: Reason
    need_bytes: int
    free_bytes: int
    in_session: int
    in_all: int
    is_queued: bool = True

    @property
    def is_yes(self) -> bool:
        return self.reason.why is Why.FITS


def choose_slot(
    mine: SlotHolder, others: Sequence[SlotHolder], caps: Caps, *, older_s: float | None = None
) -> SlotChoice:
    """`mine.since_s` and `mine.need_bytes` are those of the subagent that asks; another one of
    its session has waited since `older_s`.
    """
    everyone = [mine, *others]
    need, free = mine.need_bytes, free_bytes(everyone, caps)
    in_all = sum(holder.slots for holder in everyone)
    share = share_bytes(everyone, caps)
    first = sum(goes_first(other, mine, share) for other in others)
    first += is_older(older_s, mine.since_s)
    is_own_cap = is_full(mine.slots, caps.per_session)
    reason = Reason(Why.FITS, need_bytes=need, have_bytes=free)
    if is_own_cap:
        reason = Reason(Why.MAX_PARALLEL, running=mine.slots, limit=caps.per_session or 0)
    elif is_full(in_all, caps.in_all):
        reason = Reason(Why.MAX_PARALLEL, running=in_all, limit=caps.in_all or 0)
    elif need > free:
        budget = caps.budget_bytes
        reason = Reason(Why.NO_ROOM_BUDGET, need_bytes=need, budget_bytes=budget, have_bytes=free)
    elif first:
        reason = Reason(Why.SOMEBODY_WAITS, waiting=first)
    return SlotChoice(reason, need, max(free, 0), mine.slots, in_all, not is_own_cap)


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


def goes_first(other: SlotHolder, mine: SlotHolder, share: int) -> bool:
    return other.since_s is not None and place(other, share) < place(mine, share)


def share_bytes(everyone: Sequence[SlotHolder], caps: Caps) -> int:
    share = caps.budget_bytes // len(everyone)
    if caps.hooked_bytes is None:
        return share
    return min(share, caps.hooked_bytes // max(sum(holder.is_hooked for holder in everyone), 1))


def place(holder: SlotHolder, share: int) -> tuple[bool, float, str]:
    """The lower one goes first."""
    if holder.is_hooked:
        is_above = holder.slots > 0 and holder.bytes + holder.need_bytes > share
    else:
        is_above = holder.bytes >= share
    return is_above, holder.since_s or 0.0, holder.owner
