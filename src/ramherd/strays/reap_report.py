"""What `ramherd reap` would end, has ended, and refused, as lines."""

from collections.abc import Iterator, Sequence

from ramherd.core.units import format_duration, format_size
from ramherd.strays.nouns import PsRow
from ramherd.strays.sentences import printable, render_facts

Named = tuple[int, PsRow | None]


def render_plan(
    ends: Sequence[PsRow], later: Sequence[tuple[PsRow, float]], *, named: bool
) -> Iterator[str]:
    for row in ends:
        yield f"would end {row_line(row)}"
    for row, left_s in later:
        yield f"in {format_duration(left_s)}: {row_line(row)}"
    if not ends:
        yield "nothing to end" + (f" yet; {len(later)} orphans are in their grace" if later else "")
        return
    what = "processes" if named else "orphans"
    freed = format_size(sum(row.memory_bytes for row in ends))
    yield f"{len(ends)} {what}, {freed} would come back; to end them: add --yes"


def render_ended(ended: Sequence[tuple[PsRow, str]]) -> Iterator[str]:
    for row, how in ended:
        yield f"{how}: {row_line(row)}"
    gone = [row for row, how in ended if how in ("ended", "killed")]
    freed = format_size(sum(row.memory_bytes for row in gone))
    yield f"{len(gone)} ended, {freed} came back" if ended else "nothing to end"


def render_refused(refused: Sequence[Named]) -> Iterator[str]:
    for pid, row in refused:
        if row is None:
            yield f"not ended: {pid} is no agent, server or tool that ramherd knows"
        else:
            why = render_facts(row.spared) or render_facts(row.evidence)
            yield f"not ended: {pid} is {row.verdict}: {why}"


def row_line(row: PsRow) -> str:
    size, name = format_size(row.memory_bytes), printable(row.software)
    return f"{name} (pid {row.process.pid}, {size}): {render_facts(row.evidence)}"
