"""One panel on the screen: a table with a cursor. Only lines that have changed are drawn again."""

from textual.events import Blur, Click, Focus, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ramherd.top.cells import (
    Cell,
    SortOrder,
    TableData,
    TableRow,
    Tone,
    choose_rows,
    choose_widths,
    find_column,
    lay_out,
    lay_out_header,
)
from ramherd.top.paint import make_strip
from ramherd.top.panels import Panel
from ramherd.top.reading import Reading

WHEEL_ROWS = 3


class RowTable(Widget, can_focus=True):
    class Opened(Message):
        """A row was clicked twice."""

    class Chosen(Message):
        """The panel was clicked."""

        def __init__(self, panel: str) -> None:
            super().__init__()
            self.panel = panel

    def __init__(self, panel: Panel) -> None:
        super().__init__(id=panel.id, classes="panel")
        self.panel = panel
        self.order = SortOrder()
        self.wanted = ""
        self.is_tree = False
        self.hidden: set[str] = set()
        # Rows of the panel as a list, whether the filter or the tree shows them or not.
        self.count = 0
        self._reading: Reading | None = None
        self._data = TableData(())
        self._widths: list[int] = []
        self._cursor, self._key, self._offset = 0, "", 0
        self._strips: list[Strip] = []

    @property
    def row(self) -> TableRow | None:
        rows = self._data.rows
        return rows[self._cursor] if self._cursor < len(rows) else None

    def show(self, reading: Reading) -> None:
        """The cursor stays on its row, wherever that is now."""
        self._reading = reading
        data = self._make_data(reading, is_tree=self.is_tree)
        listed = self._make_data(reading, is_tree=False) if self.is_tree else data
        self.count = len(listed.rows)
        self._data = choose_rows(data, self.wanted, self.order)
        keys = [row.key for row in self._data.rows]
        if self._key in keys:
            self._cursor = keys.index(self._key)
        self.move(0)

    def _make_data(self, reading: Reading, *, is_tree: bool) -> TableData:
        data = self.panel.make_table(reading, is_tree=is_tree)
        rows = (row for row in data.rows if row.key not in self.hidden)
        return data._replace(rows=tuple(rows)) if self.hidden else data

    def update(self) -> None:
        """After the order, the filter or the tree has changed."""
        if self._reading is not None:
            self.show(self._reading)

    def select(self, key: str) -> bool:
        """Moves to the first row whose key begins so."""
        for at, row in enumerate(self._data.rows):
            if row.key.startswith(key):
                self.move(at - self._cursor)
                return True
        return False

    def move(self, rows: int) -> None:
        self._cursor = min(max(self._cursor + rows, 0), max(len(self._data.rows) - 1, 0))
        self._key = self.row.key if self.row is not None else self._key
        space = self.space
        self._offset = min(self._offset, max(len(self._data.rows) - space, 0), self._cursor)
        self._offset = max(self._offset, self._cursor - space + 1)
        self._draw()

    @property
    def space(self) -> int:
        """The number of rows that are shown below the header."""
        return max(self.size.height - 1 - bool(self._data.more), 1)

    def sort_by(self, column: int) -> None:
        """A second time: the other way round."""
        is_again = column == self.order.column
        self.order = SortOrder(column, not self.order.is_reversed if is_again else False)
        self.update()

    def sort_by_next(self) -> None:
        """Columns that are shown, then the order of the table itself."""
        shown = [at for at, width in enumerate(self._widths) if width]
        later = [at for at in shown if at > self.order.column]
        self.order = SortOrder(later[0] if later else -1, is_reversed=False)
        self.update()

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else make_strip([], self.size.width)

    def on_resize(self, _event: Resize) -> None:
        self.move(0)

    def on_focus(self, _event: Focus) -> None:
        self._draw()

    def on_blur(self, _event: Blur) -> None:
        self._draw()

    def on_click(self, event: Click) -> None:
        self.post_message(self.Chosen(self.panel.id))
        place = event.get_content_offset(self)
        if place is None:
            return
        if place.y == 0:
            column = find_column(self._widths, place.x, self.size.width)
            if column is not None:
                self.sort_by(column)
        elif self._offset + place.y - 1 < len(self._data.rows):
            self.move(self._offset + place.y - 1 - self._cursor)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_down(self, _event: MouseScrollDown) -> None:
        self.move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, _event: MouseScrollUp) -> None:
        self.move(-WHEEL_ROWS)

    def _draw(self) -> None:
        width, height = self.size
        if width <= 0 or height <= 0:
            return
        self._set_titles()
        before, self._strips = self._strips, self._make_strips(width, height)
        if len(before) != len(self._strips):
            self.refresh()
            return
        changed = [
            Region(0, y, width, 1)
            for y, strips in enumerate(zip(before, self._strips, strict=True))
            if strips[0] != strips[1]
        ]
        if changed:
            self.refresh(*changed)

    def _make_strips(self, width: int, height: int) -> list[Strip]:
        data = self._data
        if not data.rows:
            nothing = f"no row has {self.wanted!r}" if self.wanted else data.empty
            strips = [make_strip([Cell(nothing, Tone.DIM)], width)]
            strips += [make_strip([Cell(data.more, Tone.WARN)], width)] if data.more else []
            return pad_strips(strips, width, height)
        self._widths = choose_widths(data, width, self.order)
        shown = range(self._offset, min(self._offset + self.space, len(data.rows)))
        strips = [make_strip(lay_out_header(data, self._widths, self.order, width), width)]
        strips += [
            make_strip(
                lay_out(data.rows[at].cells, data, self._widths, width), width,
                is_selected=at == self._cursor and self.has_focus,
            )
            for at in shown
        ]  # fmt: skip
        if data.more and len(strips) < height:
            strips.append(make_strip([Cell(data.more, Tone.WARN)], width))
        return pad_strips(strips, width, height)

    def _set_titles(self) -> None:
        """The number of rows, and which of them are shown."""
        rows = len(self._data.rows)
        number = f" {rows}" if rows else ""
        wanted = f" /{self.wanted}" if self.wanted else ""
        title = f"{self.panel.title}{number}{wanted}"
        is_cut = rows > self.space
        part = f"{self._offset + 1}-{min(self._offset + self.space, rows)} of {rows}"
        subtitle = part if is_cut else ""
        if (self.border_title, self.border_subtitle) != (title, subtitle):
            self.border_title, self.border_subtitle = title, subtitle


def pad_strips(strips: list[Strip], width: int, height: int) -> list[Strip]:
    blank = make_strip([], width)
    return [*strips, *[blank] * (height - len(strips))][:height]
