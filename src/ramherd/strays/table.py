"""`ramherd ps` on a screen: rows grouped by session, or as a tree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pwd import getpwuid
from typing import Any

from ramherd.core.units import format_duration, format_size
from ramherd.strays.nouns import PsRow, Saving, Verdict, WarningSign
from ramherd.strays.sentences import printable, render_evidence, render_facts, render_warning

HEAD = ("PID", "MEMORY", "GROWTH", "AGE", "IDLE", "USER", "VERDICT", "WHAT", "WHY")
WHAT_CHARS = 44
LEFT = "left behind, or of no session"


def render_ps(rows: Sequence[PsRow], exact: frozenset[int], *, tree: bool) -> Iterator[str]:
    """Groups with most memory first; within one parents stand before their children."""
    if not rows:
        yield "no agents, MCP servers or their tools are running"
        return
    for title, members in groups(rows):
        total = sum(row.memory_bytes for row in members)
        yield f"{title}: {len(members)} processes, {format_size(total)}"
        ordered = as_tree(members) if tree else [(row, 0) for row in by_memory(members)]
        yield from align([HEAD, *(cells(row, exact, depth) for row, depth in ordered)])
        yield ""
    total = sum(row.memory_bytes for row in rows)
    yield f"{len(rows)} processes, {format_size(total)}; {count_verdicts(rows)}"


def groups(rows: Sequence[PsRow]) -> list[tuple[str, list[PsRow]]]:
    found: dict[int, list[PsRow]] = {}
    for row in rows:
        is_left = row.verdict is Verdict.ORPHAN or not row.session
        found.setdefault(0 if is_left else row.session, []).append(row)
    titled = [(title_of(session, members), members) for session, members in found.items()]
    return sorted(titled, key=lambda group: -sum(row.memory_bytes for row in group[1]))


def title_of(session: int, members: Sequence[PsRow]) -> str:
    root = next((row for row in members if row.process.pid == session), None)
    if root is None:
        return LEFT
    place = f" in {root.application}" if root.application else ""
    return f"{root.software} {session}{place}"


def by_memory(rows: Iterable[PsRow]) -> list[PsRow]:
    return sorted(rows, key=lambda row: -row.memory_bytes)


def as_tree(rows: Sequence[PsRow]) -> list[tuple[PsRow, int]]:
    pids = {row.process.pid for row in rows}
    children: dict[int, list[PsRow]] = {}
    for row in by_memory(rows):
        children.setdefault(row.process.ppid if row.process.ppid in pids else 0, []).append(row)
    found: list[tuple[PsRow, int]] = []
    edge = [(row, 0) for row in reversed(children.get(0, []))]
    while edge:
        row, depth = edge.pop()
        found.append((row, depth))
        edge += [(child, depth + 1) for child in reversed(children.get(row.process.pid, []))]
    return found


def cells(row: PsRow, exact: frozenset[int], depth: int) -> tuple[str, ...]:
    what = "  " * depth + printable(f"{row.software} {row.kind.value}")
    size = format_size(row.memory_bytes) + ("" if row.process.pid in exact else "*")
    return (
        str(row.process.pid),
        size,
        "-" if not row.growth_bytes else signed(row.growth_bytes),
        format_duration(row.age_s),
        "-" if row.idle_s is None else format_duration(row.idle_s),
        user_name(row.process.uid),
        row.verdict.value,
        what[:WHAT_CHARS],
        render_facts(row.evidence),
    )


def signed(size: int) -> str:
    return format_size(size) if size < 0 else f"+{format_size(size)}"


def user_name(uid: int) -> str:
    try:
        return getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def align(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Numbers to the right, words to the left, the last column as long as it is."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        left = [cell.rjust(width) for cell, width in zip(row[:5], widths[:5], strict=True)]
        right = [cell.ljust(width) for cell, width in zip(row[5:-1], widths[5:-1], strict=True)]
        yield "  ".join([" ", *left, *right, row[-1]]).rstrip()


def count_verdicts(rows: Sequence[PsRow]) -> str:
    counts = [(verdict, sum(row.verdict is verdict for row in rows)) for verdict in Verdict]
    return ", ".join(f"{count} {verdict}" for verdict, count in counts if count)


def render_signs(warnings: Iterable[WarningSign], savings: Iterable[Saving]) -> Iterator[str]:
    for saving in savings:
        yield (
            f"shared: {saving.copies} copies of {printable(saving.software)} run; "
            f"one for all would save {format_size(saving.saved_bytes)}"
        )
    for sign in warnings:
        yield f"warning: {render_warning(sign)}"


def row_json(row: PsRow, exact: frozenset[int]) -> Mapping[str, Any]:
    return {
        "pid": row.process.pid,
        "start_ticks": row.process.id.start_ticks,
        "ppid": row.process.ppid,
        "uid": row.process.uid,
        "software": row.software,
        "kind": row.kind,
        "verdict": row.verdict,
        "evidence": [{"fact": one.fact, "text": render_evidence(one)} for one in row.evidence],
        "spared": [{"fact": one.fact, "text": render_evidence(one)} for one in row.spared],
        "session": row.session or None,
        "application": row.application or None,
        "memory_bytes": row.memory_bytes,
        "memory_kind": "pss" if row.process.pid in exact else "anonymous",
        "age_s": round(row.age_s, 1),
        "idle_s": None if row.idle_s is None else round(row.idle_s, 1),
        "growth_bytes": row.growth_bytes,
        "orphan_since_s": row.orphan_s,
        "command": printable(row.command),
    }
