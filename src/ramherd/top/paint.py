"""Cells as Textual draws them. The sixteen colours of the terminal alone, so that light, dark and
poor terminals show what their user chose; Textual removes them where NO_COLOR is set.
"""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ramherd.show.live_display import cells as count_cells
from ramherd.top.cells import Cell, Tone

STYLES = {
    Tone.PLAIN: Style(),
    Tone.DIM: Style(dim=True),
    Tone.STRONG: Style(bold=True),
    Tone.TITLE: Style(bold=True, color="cyan"),
    Tone.GOOD: Style(color="green"),
    Tone.WARN: Style(color="yellow"),
    Tone.BAD: Style(color="red", bold=True),
    Tone.ACCENT: Style(color="cyan"),
}
SELECTED = Style(reverse=True)
# A chosen row is one block: a dim or coloured word in reverse is hard to read.
SELECTED_ROW = Style(reverse=True, bold=True)


def make_strip(line: Iterable[Cell], width: int, *, is_selected: bool = False) -> Strip:
    """A line of exactly this width."""
    segments = [
        Segment(cell.text, SELECTED_ROW if is_selected else STYLES[cell.tone]) for cell in line
    ]
    used = sum(count_cells(segment.text) for segment in segments)
    if used < width:
        segments.append(Segment(" " * (width - used), SELECTED_ROW if is_selected else Style()))
    strip = Strip(segments, max(used, width))
    return strip if used <= width else strip.crop(0, width)
