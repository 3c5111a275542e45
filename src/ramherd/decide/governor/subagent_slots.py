"""Which subagent may start next: room for all of it, or none.

A subagent is no run that grows grant by grant: it lives inside its session's process, so it
gets its whole lease at once, its slot, or waits. Sessions below their share of the budget come
first, the one that waits longest before the others. A session without a slot is always below
its share: whoever is first of all needs nothing but room, so somebody always goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class SlotHolder(NamedTuple):
    """One application. `slots` are subagents that run or are about to; `since_s` and
    `need_bytes` are of its oldest waiter (no need: whatever there is helps, as in a herd).
    """

    owner: str
    bytes: int = 0
    slots: int = 0
    since_s: float | None = None
    need_bytes: int = 0
    is_hooked: bool = True


class Caps(NamedTuple):
    """`budget_bytes` is for everybody, `hooked_bytes` for all hooked sessions together."""

    budget_bytes: int
    hooked_bytes: int | None = None
    per_session: int | None = None
    in_all: int | None = None


class SlotChoice(NamedTuple):
    """`why` is a word of `model.Why`: "fits", or what is in the way."""

    why: str
    need_bytes: int
    free_bytes: int
    in_session: int
    in_all: int
    # Kept back by its own session alone, it is in nobody's way.
    is_queued: bool = True

    @property
    def is_yes(self) -> bool:
        return self.why == "fits"


def choose_slot(
    mine: SlotHolder, others: Sequence[SlotHolder], caps: Caps, *, older_s: float | None = None
) -> SlotChoice:
    """`mine.since_s` and `mine.need_bytes` are the subagent's that asks; `older_s` is since
    when another one of its session waits.
    """
    everyone = [mine, *others]
    in_all = sum(holder.slots for holder in everyone)
    free = free_bytes(everyone, caps)
    is_own_cap = is_full(mine.slots, caps.per_session)
    share = share_bytes(everyone, caps)
    why = "fits"
    if is_own_cap or is_full(in_all, caps.in_all):
        why = "max_parallel"
    elif mine.need_bytes > free:
        why = "no_room_budget"
    elif is_older(older_s, mine.since_s) or any(goes_first(other, mine, share) for other in others):
        why = "somebody_waits"
    return SlotChoice(why, mine.need_bytes, max(free, 0), mine.slots, in_all, not is_own_cap)


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
