"""The memory of the machine as one bar, and the numbers below it. Pure."""

from typing import NamedTuple

from ramherd.core.units import format_size
from ramherd.show.job_table import short_size
from ramherd.top.cells import Cell, Tone
from ramherd.top.reading import MemoryParts


class BarPart(NamedTuple):
    """Told apart by its sign as well as by its colour."""

    name: str
    sign: str
    tone: Tone


PARTS = (
    BarPart("others", "▒", Tone.DIM),
    BarPart("used", "█", Tone.GOOD),
    BarPart("granted", "▓", Tone.ACCENT),
    BarPart("reclaimable", "░", Tone.DIM),
    BarPart("free", "·", Tone.DIM),
)
MARK = "┃"


def render_bar(memory: MemoryParts, width: int) -> list[Cell]:
    """Cells in the order of PARTS, with the mark in between."""
    if width < 1 or not memory.total_bytes:
        return []
    signs = [part for part, cells in split_cells(memory, width) for _cell in range(cells)]
    mark = min(round(width * memory.mark_bytes / memory.total_bytes), width - 1)
    is_over = sum(sizes(memory)[:3]) > memory.mark_bytes
    line = [
        Cell(MARK, Tone.BAD if is_over else Tone.WARN) if at == mark else Cell(part.sign, part.tone)
        for at, part in enumerate(signs)
    ]
    return join_cells(line)


def split_cells(memory: MemoryParts, width: int) -> list[tuple[BarPart, int]]:
    """Each part ends where the sum up to it ends: no rounding error adds up. A part that is not
    empty has at least one cell, if there is room.
    """
    found, start, upto = [], 0, 0
    for part, size in zip(PARTS, sizes(memory), strict=True):
        upto += size
        end = max(round(width * upto / memory.total_bytes), start + (1 if size else 0))
        end = width if part is PARTS[-1] else min(end, width)
        found.append((part, end - start))
        start = end
    return found


def sizes(memory: MemoryParts) -> tuple[int, ...]:
    return (
        memory.others_bytes, memory.used_bytes, memory.granted_bytes, memory.reclaimable_bytes,
        memory.free_bytes,
    )  # fmt: skip


def render_legend(memory: MemoryParts, width: int) -> list[Cell]:
    """`▒ others 4.1G  █ used 9.8G ...`, and the mark if there is room."""
    line: list[Cell] = []
    for part, size in zip(PARTS, sizes(memory), strict=True):
        line += [Cell(part.sign, part.tone), Cell(f" {part.name} {short_size(size)}  ")]
    share = round(100 * memory.mark_bytes / memory.total_bytes) if memory.total_bytes else 0
    mark = [Cell(MARK, Tone.WARN), Cell(f" {share} % of {format_size(memory.total_bytes)}")]
    if sum(len(cell.text) for cell in line + mark) <= width:
        line += mark
    return line


def join_cells(line: list[Cell]) -> list[Cell]:
    """Neighbours of one tone become one cell: fewer bytes for the terminal."""
    joined: list[Cell] = []
    for cell in line:
        if joined and joined[-1].tone == cell.tone:
            joined[-1] = Cell(joined[-1].text + cell.text, cell.tone)
        else:
            joined.append(cell)
    return joined
