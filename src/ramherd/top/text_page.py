"""A page of text over the panels: a log that is followed, a diff, a job, help."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown, MouseScrollUp, Resize
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from ramherd.show.event_lines import printable
from ramherd.show.live_display import cells as count_cells
from ramherd.show.live_display import cut
from ramherd.top.cells import Cell, Tone, is_line_wanted
from ramherd.top.paint import make_strip
from ramherd.top.verb_process import VerbProcess

# More lines are in the log itself.
MOST_LINES = 5000
READ_EVERY_S = 0.25
WHEEL_LINES = 3

# Lines of `git diff`, and of a transcript, by their first characters.
DIFF_TONES = (
    ("diff --git", Tone.STRONG), ("+++", Tone.STRONG), ("---", Tone.STRONG), ("+", Tone.GOOD),
    ("-", Tone.BAD), ("@@", Tone.ACCENT),
)  # fmt: skip
LOG_TONES = (
    ("> ", Tone.STRONG), ("* ", Tone.ACCENT), ("! ", Tone.BAD), ("--- ", Tone.DIM),
    ("    ", Tone.DIM), ("stderr: ", Tone.DIM),
)  # fmt: skip
Tones = tuple[tuple[str, Tone], ...]


def tone_of(line: str, tones: Tones) -> Tone:
    return next((tone for start, tone in tones if line.startswith(start)), Tone.PLAIN)


def wrap_cells(text: str, width: int) -> list[str]:
    """Broken where the line is full: every character is shown."""
    parts = []
    while count_cells(text) > width > 0:
        part = cut(text, width) or text[:1]
        parts.append(part)
        text = text[len(part) :]
    return [*parts, text]


class TextLines(Widget, can_focus=True):
    """Lines, the last of which are followed while the user is at the end."""

    def __init__(self, tones: Tones, *, is_wrapped: bool, is_following: bool) -> None:
        super().__init__(id="text")
        self._tones = tones
        self.is_wrapped, self.is_following = is_wrapped, is_following
        self.wanted = ""
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._rows: list[Cell] = []
        self._offset = 0

    def append(self, lines: Iterable[str]) -> None:
        new = [printable(line.expandtabs(4)) for line in lines]
        is_full = len(self._lines) + len(new) > MOST_LINES
        self._lines.extend(new)
        if is_full:
            self.lay_out()
            return
        self._rows += self._make_rows(new)
        self.move(0)

    def lay_out(self) -> None:
        """After the width, the wrapping or the filter has changed."""
        self._rows = self._make_rows(self._lines)
        self.move(0)

    def move(self, rows: int) -> None:
        """Follows again at the end."""
        last = max(len(self._rows) - self.size.height, 0)
        if rows:
            self._offset = min(max(self._offset + rows, 0), last)
            self.is_following = self.is_following and self._offset == last
        self._offset = last if self.is_following else min(self._offset, last)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = self._offset + y
        line = [self._rows[at]] if at < len(self._rows) else []
        return make_strip(line, self.size.width)

    def on_resize(self, _event: Resize) -> None:
        self.lay_out()

    def on_mouse_scroll_down(self, _event: MouseScrollDown) -> None:
        self.move(WHEEL_LINES)

    def on_mouse_scroll_up(self, _event: MouseScrollUp) -> None:
        self.move(-WHEEL_LINES)

    def _make_rows(self, lines: Iterable[str]) -> list[Cell]:
        width = self.size.width
        wanted = [line for line in lines if is_line_wanted(line, self.wanted)]
        return [
            Cell(part, tone_of(line, self._tones))
            for line in wanted
            for part in (wrap_cells(line, width) if self.is_wrapped else [line])
        ]


class TextPage(ModalScreen[None]):
    """`verb` prints the lines; with `is_following` it prints on. Its end, or the end of the page,
    ends it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+c", "back", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("home,g", "edge(-1)", show=False),
        Binding("end,G", "edge(1)", show=False),
        Binding("f", "follow", show=False),
        Binding("w", "wrap", show=False),
        Binding("slash", "filter", show=False),
    ]

    def __init__(
        self, title: str, tones: Tones = (), *, lines: Iterable[str] = (),
        start: Callable[[int], VerbProcess] | None = None,
        is_following: bool = False, is_wrapped: bool = True,
    ) -> None:  # fmt: skip
        """`start` gets the width of the page."""
        super().__init__()
        self._title, self._first, self._start = title, list(lines), start
        self._text = TextLines(tones, is_wrapped=is_wrapped, is_following=is_following)
        self._input = Input(id="prompt", placeholder="filter")
        self._input.cursor_blink = False
        self._verb: VerbProcess | None = None

    def compose(self) -> ComposeResult:
        yield self._text
        yield self._input

    def on_mount(self) -> None:
        self._input.display = False
        self._text.border_title = self._title
        self._set_keys()
        self._text.focus()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self._text.append(self._first)
        if self._start is not None:
            self._verb = self._start(max(self._text.size.width, 20))
            self.set_interval(READ_EVERY_S, self._read)
            self._read()

    def _read(self) -> None:
        if self._verb is not None and (lines := self._verb.read_lines()):
            self._text.append(lines)

    def on_unmount(self) -> None:
        if self._verb is not None:
            self._verb.stop()

    def action_back(self) -> None:
        if self._input.display:
            self._close_filter("")
            return
        self.dismiss()

    def action_move(self, rows: int) -> None:
        self._text.move(rows)

    def action_page(self, pages: int) -> None:
        self._text.move(pages * max(self._text.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        self._text.move(direction * (1 << 30))

    def action_follow(self) -> None:
        self._text.is_following = not self._text.is_following
        self._text.move(0)
        self._set_keys()

    def action_wrap(self) -> None:
        self._text.is_wrapped = not self._text.is_wrapped
        self._text.lay_out()

    def action_filter(self) -> None:
        self._input.display = True
        self._input.value = self._text.wanted
        self._input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._text.wanted = event.value
        self._text.lay_out()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_filter(event.value)

    def _close_filter(self, wanted: str) -> None:
        self._input.value = wanted
        self._text.wanted = wanted
        self._input.display = False
        self._text.focus()
        self._text.lay_out()
        self._set_keys()

    def _set_keys(self) -> None:
        follows = "on" if self._text.is_following else "off"
        wanted = f"  /{self._text.wanted}" if self._text.wanted else ""
        self._text.border_subtitle = f"Esc back  f follow {follows}  w wrap  / filter{wanted}"
