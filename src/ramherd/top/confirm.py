"""A question before something is changed: what happens, to what, and the evidence for it."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from ramherd.top.cells import Cell, Tone
from ramherd.top.paint import make_strip
from ramherd.top.text_page import wrap_cells

ANSWERS = ((" y ", " yes   "), (" n ", " no"))


class QuestionLines(Widget):
    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(id="question")
        self._lines = lines

    def render_line(self, y: int) -> Strip:
        rows = self.rows(self.size.width)
        return make_strip(rows[y] if y < len(rows) else [], self.size.width)

    def rows(self, width: int) -> list[list[Cell]]:
        lines = [part for line in self._lines for part in wrap_cells(line, width)]
        asked = [[Cell(line, Tone.STRONG if at == 0 else Tone.PLAIN)]
                 for at, line in enumerate(lines)]  # fmt: skip
        answer = [cell for key, word in ANSWERS for cell in (Cell(key, Tone.TITLE), Cell(word))]
        return [*asked, [], answer]


class Confirmation(ModalScreen[bool]):
    """True if the user says yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q,ctrl+c", "answer(False)", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._question = QuestionLines(lines)

    def compose(self) -> ComposeResult:
        yield self._question

    def on_mount(self) -> None:
        self._question.border_title = self._title
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """As high as its lines."""
        width = min(self.size.width - 4, 100)
        self._question.styles.width = width
        rows = len(self._question.rows(width - 4))
        self._question.styles.height = min(rows + 2, self.size.height)

    def on_click(self, event: Click) -> None:
        """On one of the answers."""
        place = event.get_content_offset(self._question)
        if place is None or place.y != len(self._question.rows(self._question.size.width)) - 1:
            return
        yes = len("".join(ANSWERS[0]))
        self.dismiss(place.x < yes)

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
