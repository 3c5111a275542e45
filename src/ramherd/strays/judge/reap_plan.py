"""The processes that `reap` ends, and those that it refuses to end."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramherd.core.model import Reason, Why
from ramherd.strays.judge.protection import IN_USE
from ramherd.strays.nouns import Evidence, Fact, PsRow, Verdict


@dataclass(frozen=True, slots=True)
class ReapPlan:
    """`later` are orphans whose grace is not over, `refused` processes that may not be ended."""

    ends: tuple[PsRow, ...] = ()
    later: tuple[tuple[PsRow, float], ...] = ()
    refused: tuple[tuple[int, PsRow | None], ...] = ()

    @property
    def freed_bytes(self) -> int:
        return sum(row.memory_bytes for row in self.ends)


def choose_orphans(
    rows: Sequence[PsRow], at_s: float, grace_s: float, *, all_users: bool = False
) -> ReapPlan:
    """Processes that have been proved orphans for the grace period."""
    ends, later = [], []
    for row in rows:
        if row.orphan_s is None or objections(row, all_users=all_users):
            continue
        left_s = grace_s - (at_s - row.orphan_s)
        if left_s <= 0:
            ends.append(row)
        else:
            later.append((row, left_s))
    return ReapPlan(tuple(ends), tuple(later))


def choose_named(
    rows: Sequence[PsRow], named: Sequence[int], *, all_users: bool = False
) -> ReapPlan:
    """The processes that the user names, with all that they started, except those in use."""
    by_pid = {row.process.pid: row for row in rows}
    ends: dict[int, PsRow] = {}
    refused = []
    for pid in named:
        row = by_pid.get(pid)
        if row is None or not may_be_named(row, all_users=all_users):
            refused.append((pid, row))
        else:
            ends[pid] = row
    # Rows are in order, parents first.
    for row in rows:
        in_use = any(one.fact in IN_USE for one in row.spared)
        if row.process.ppid in ends and not in_use and not is_never(row, all_users=all_users):
            ends.setdefault(row.process.pid, row)
    return ReapPlan(tuple(ends.values()), refused=tuple(refused))


def objections(row: PsRow, *, all_users: bool) -> list[Evidence]:
    return [one for one in row.spared if not (all_users and one.fact is Fact.OTHER_USER)]


def is_never(row: PsRow, *, all_users: bool) -> bool:
    never = {Fact.OURS, Fact.RAMHERD, Fact.UNREADABLE, Fact.KEPT} | (
        set() if all_users else {Fact.OTHER_USER}
    )
    return any(one.fact in never for one in row.spared)


def may_be_named(row: PsRow, *, all_users: bool) -> bool:
    """A user may end a suspect; not a process in use, nor one that cannot be read."""
    is_suspect = row.verdict in (Verdict.SUSPECT, Verdict.ORPHAN)
    return is_suspect and not is_never(row, all_users=all_users)


def explain_end(row: PsRow, evidence: str | None, *, outcome: str) -> Reason:
    """Why a process was ended: by its evidence; None if the user named it."""
    numbers: dict[str, int | str] = {
        "software": row.software, "pid": row.process.pid, "memory_bytes": row.memory_bytes,
        "outcome": outcome, "command": row.command, "cwd": row.cwd,
    }  # fmt: skip
    if evidence is None:
        return Reason(Why.NAMED, **numbers)
    return Reason(Why.ABANDONED, **numbers, evidence=evidence)
