"""Tables of text: columns, rows, and what a user does with them: sort, filter, lay out. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from ramherd.show.event_lines import printable
from ramherd.show.job_table import shorten
from ramherd.show.live_display import cells as count_cells
from ramherd.show.live_display import cut

# Between columns; on a narrow screen every cell counts.
GAP, NARROW_GAP, NARROW = 2, 1, 100
LEAST_FLEXIBLE = 8
NOT = "!"


class Tone(StrEnum):
    """The meaning of a colour. Each is also told by words, for terminals without colours."""

    PLAIN = ""
    DIM = "dim"
    STRONG = "strong"
    TITLE = "title"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    ACCENT = "accent"


class Cell(NamedTuple):
    """`value` sorts the rows; None sorts last."""

    text: str = ""
    tone: Tone = Tone.PLAIN
    value: Any = None


class Column(NamedTuple):
    """`most` is its largest width. A column of a higher `rank` is left out first where there is no
    room. The one with rank 0 gets the width that is left; it shrinks to `least` before others are
    left out (0: to half of the width).
    """

    title: str
    most: int = 12
    is_right: bool = False
    rank: int = 1
    least: int = 0


class TableRow(NamedTuple):
    """`key` stays the same from frame to frame. `depth` indents the row below another one."""

    key: str
    cells: tuple[Cell, ...]
    depth: int = 0


class TableData(NamedTuple):
    """`empty` is the sentence for a table without rows, `more` a last line."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...] = ()
    empty: str = ""
    more: str = ""


class SortOrder(NamedTuple):
    """`column` -1 is the order of the table itself."""

    column: int = -1
    is_reversed: bool = False


def make_cell(text: str, tone: Tone = Tone.PLAIN, value: Any = None) -> Cell:
    """Of text from elsewhere: control characters and line ends are removed."""
    return Cell(printable(" ".join(text.split())), tone, text.lower() if value is None else value)


def choose_rows(table: TableData, wanted: str, order: SortOrder) -> TableData:
    """The rows that have the wanted text (`!text`: do not have it), sorted."""
    rows = [row for row in table.rows if is_wanted(row, wanted)]
    if order.column >= 0 and not any(row.depth for row in rows):
        rows = sort_rows(rows, order)
    return table._replace(rows=tuple(rows))


def is_wanted(row: TableRow, wanted: str) -> bool:
    return not wanted or is_line_wanted(" ".join(cell.text for cell in row.cells), wanted)


def is_line_wanted(line: str, wanted: str) -> bool:
    text = wanted.removeprefix(NOT).lower()
    return not text or (text in line.lower()) != wanted.startswith(NOT)


def sort_rows(rows: Iterable[TableRow], order: SortOrder) -> list[TableRow]:
    """Rows without a value come last, in both directions."""
    listed = list(rows)
    known = [row for row in listed if row.cells[order.column].value is not None]
    unknown = [row for row in listed if row.cells[order.column].value is None]
    known.sort(key=lambda row: sort_key(row.cells[order.column]), reverse=order.is_reversed)
    return known + unknown


def sort_key(cell: Cell) -> tuple[bool, Any]:
    """Numbers and texts can be in one column."""
    return isinstance(cell.value, str), cell.value


def choose_widths(
    table: TableData,
    width: int,
    order: SortOrder = SortOrder(),  # noqa: B008 - a value
) -> list[int]:
    """The width of each column; 0 for a column that is left out: without any text, or no room."""
    texts = [[row.cells[at].text for row in table.rows] for at in range(len(table.columns))]
    widths = [
        min(max(map(count_cells, [column.title, *text])), column.most) if any(text) else 0
        for column, text in zip(table.columns, texts, strict=True)
    ]
    if order.column >= 0 and widths[order.column]:
        arrowed = len(table.columns[order.column].title) + 1
        widths[order.column] = max(widths[order.column], arrowed)
    flexible = next((at for at, column in enumerate(table.columns) if not column.rank), None)
    if flexible is not None and widths[flexible]:
        widths[flexible] = max(map(count_cells, [table.columns[flexible].title, *texts[flexible]]))
    fit_width(table.columns, widths, width, flexible)
    return widths


def fit_width(
    columns: Sequence[Column], widths: list[int], width: int, flexible: int | None
) -> None:
    """First the flexible column shrinks, then columns are left out."""
    least = 0
    if flexible is not None:
        least = min(widths[flexible], columns[flexible].least or width // 2)
    while (over := total_width(widths, width) - width) > 0:
        if flexible is not None and widths[flexible] > least:
            widths[flexible] = max(widths[flexible] - over, least)
            continue
        shown = [at for at, one in enumerate(widths) if one and columns[at].rank > 1]
        if not shown:
            break
        widths[max(shown, key=lambda at: columns[at].rank)] = 0
    if flexible is not None and widths[flexible]:
        rest = widths[flexible] + width - total_width(widths, width)
        widths[flexible] = max(rest, LEAST_FLEXIBLE)


def choose_gap(width: int) -> int:
    return NARROW_GAP if width < NARROW else GAP


def total_width(widths: Sequence[int], width: int) -> int:
    shown = [one for one in widths if one]
    return sum(shown) + choose_gap(width) * max(len(shown) - 1, 0)


def lay_out(
    cells: Sequence[Cell], table: TableData, widths: Sequence[int], width: int
) -> list[Cell]:
    """One line of this width: the cells padded, with gaps between them."""
    line: list[Cell] = []
    gap = Cell(" " * choose_gap(width))
    for cell, column, most in zip(cells, table.columns, widths, strict=True):
        if most:
            text = Cell(fit_text(cell.text, most, is_right=column.is_right), cell.tone)
            line += [gap, text] if line else [text]
    return line


def lay_out_header(
    table: TableData, widths: Sequence[int], order: SortOrder, width: int
) -> list[Cell]:
    arrow = "v" if order.is_reversed else "^"
    titles = [
        Cell(column.title + (arrow if at == order.column else ""), Tone.TITLE)
        for at, column in enumerate(table.columns)
    ]
    return lay_out(titles, table, widths, width)


def find_column(widths: Sequence[int], x: int, width: int) -> int | None:
    """The column at a place of a line of this width."""
    start, gap = 0, choose_gap(width)
    for at, most in enumerate(widths):
        if most and start <= x < start + most + gap:
            return at
        start += most + gap if most else 0
    return None


def fit_text(text: str, width: int, *, is_right: bool = False) -> str:
    if text.isascii():
        shown = shorten(text, width)
        return shown.rjust(width) if is_right else shown.ljust(width)
    shown = cut(text, width)
    pad = " " * (width - count_cells(shown))
    return pad + shown if is_right else shown + pad
