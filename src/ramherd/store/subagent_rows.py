"""The ledger's rows as hooked sessions see them, and what a decision needs of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.decide.governor.subagent_slots import Caps, Holder
from ramherd.decide.shares import budget_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ramherd.store.ledger import LeaseRow

# Less than this is noise, and every write wakes those who wait.
NOTED_BYTES = 1 << 20
HOOKED = ("session", "subagent")


class Size(NamedTuple):
    """Of RAM, or of a limit that we live under: which cgroup it is of, in which tree."""

    bytes: int
    used_bytes: int
    tree: str = ""
    path: str = ""


class Room(NamedTuple):
    """`is_below` tells whether a process is held by a limit: what others use elsewhere is no
    part of it.
    """

    sizes: Sequence[Size]
    share: float
    is_below: Callable[[int, Size], bool]
    hooked_bytes: int | None = None
    per_session: int | None = None
    in_all: int | None = None


class Starting(NamedTuple):
    """A subagent that starts, and where Claude writes down what it does."""

    name: str
    type: str = ""
    transcript: str = ""


class Past(NamedTuple):
    """A subagent that is over. `started_s` is since boot, as the start of a process is;
    `most_bytes` is what it was seen to hold at most.
    """

    type: str
    started_s: float
    before_bytes: int
    most_bytes: int
    used_bytes: int


def is_seat(row: LeaseRow) -> bool:
    return row.kind == "subagent" and row.bytes > 0


def is_news(before: Iterable[int], now: Iterable[int]) -> bool:
    return any(abs(a - b) >= NOTED_BYTES for a, b in zip(before, now, strict=True))


def used_by(owner: str, rows: Iterable[LeaseRow]) -> int:
    return sum(row.used_bytes for row in rows if row.owner == owner)


def holders(own: str, rows: Iterable[LeaseRow]) -> dict[str, Holder]:
    """One for each application; our own is among them."""
    found = {own: Holder(own)}
    for row in rows:
        holder = found.get(row.owner, Holder(row.owner, is_hooked=row.kind in HOOKED))
        found[row.owner] = joined(holder, row)
    return found


def joined(holder: Holder, row: LeaseRow) -> Holder:
    holder = holder._replace(bytes=holder.bytes + row.bytes, seats=holder.seats + is_seat(row))
    since_s = row.waiting_since_s
    if since_s is None or (holder.since_s is not None and holder.since_s <= since_s):
        return holder
    return holder._replace(
        since_s=since_s, need_bytes=row.wants_bytes if row.kind == "subagent" else 0
    )


def caps_of(rows: Sequence[LeaseRow], pids: Mapping[str, int], room: Room) -> Caps:
    """The budget is the least that RAM or a limit leaves."""

    def ours(size: Size) -> int:
        counted = {
            owner for owner, pid in pids.items() if not size.tree or room.is_below(pid, size)
        }
        return sum(row.used_bytes for row in rows if row.owner in counted)

    budget = min(
        budget_of(size.bytes, size.used_bytes, ours(size), room.share) for size in room.sizes
    )
    return Caps(max(budget, 0), room.hooked_bytes, room.per_session, room.in_all)
