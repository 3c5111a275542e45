"""The lines around the panels: state and memory at the top, the names of panels, and the keys."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from textual.events import Click, Resize
from textual.strip import Strip
from textual.widget import Widget

from ramherd import __version__
from ramherd.core.units import format_size
from ramherd.show.live_display import cells as count_cells
from ramherd.show.wait_text import render_span
from ramherd.top.cells import Cell, Tone
from ramherd.top.key_bindings import KeyUse
from ramherd.top.memory_bar import render_bar, render_legend
from ramherd.top.paint import make_strip
from ramherd.top.reading import Job, Reading

LEVEL_TONES = {"calm": Tone.GOOD, "tight": Tone.WARN, "single": Tone.BAD}
STATES = ("running", "held", "queued", "waiting", "failed", "done")
STATE_TONES = {"running": Tone.GOOD, "held": Tone.WARN, "failed": Tone.BAD}


class LinesWidget(Widget):
    """Lines that are made again when their values or the width have changed."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._strips: list[Strip] = []

    def make_lines(self, width: int) -> list[list[Cell]]:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else make_strip([], self.size.width)

    def on_resize(self, _event: Resize) -> None:
        self.draw()

    def draw(self) -> None:
        width = self.size.width
        if width <= 0:
            return
        strips = [make_strip(line, width) for line in self.make_lines(width)]
        if strips != self._strips:
            self._strips = strips
            self.refresh()


class StatusHead(LinesWidget):
    """The service and its jobs in one line, the memory of the machine as a bar, and its parts."""

    def __init__(self) -> None:
        super().__init__("head")
        self._reading: Reading | None = None

    def show(self, reading: Reading) -> None:
        self._reading = reading
        self.draw()

    def make_lines(self, width: int) -> list[list[Cell]]:
        if self._reading is None:
            return [[Cell("ramherd: reading ...", Tone.DIM)]]
        memory = self._reading.memory
        return [
            spread(render_service(self._reading), [render_clock(self._reading)], width),
            render_bar(memory, width),
            render_legend(memory, width),
        ]


def render_service(reading: Reading) -> list[Cell]:
    line = [Cell("ramherd ", Tone.STRONG)]
    snapshot = reading.service.snapshot
    if reading.service.problem:
        line.append(Cell("service lost", Tone.BAD))
    elif snapshot is None:
        line.append(Cell("no service", Tone.DIM))
    else:
        level = snapshot["level"]
        up = render_span(reading.at_s - snapshot["started_s"])
        line += [Cell(f"up {up} "), Cell(level, LEVEL_TONES.get(level, Tone.PLAIN))]
        line += [Cell(" draining", Tone.WARN)] if snapshot["draining"] else []
    line += [Cell(" paused", Tone.WARN)] if reading.paused_s is not None else []
    for state in STATES:
        if number := count_state(reading, state):
            line += [Cell("  "), Cell(f"{number} {state}", STATE_TONES.get(state, Tone.PLAIN))]
    return [*line, Cell(f"  budget {format_size(reading.memory.budget_bytes)}", Tone.DIM)]


def count_state(reading: Reading, state: str) -> int:
    """Held runs are read from the service, which knows it first."""
    held = len([job for job in reading.live if is_held(job)])
    if state == "held":
        return held
    return len(reading.live) - held if state == "running" else reading.counts.get(state, 0)


def is_held(job: Job) -> bool:
    return job.get("held_s") is not None or job["state"] == "held"


def render_clock(reading: Reading) -> Cell:
    clock = time.strftime("%H:%M:%S", time.localtime(reading.at_s))
    return Cell(f"{__version__}  {clock}", Tone.DIM)


def spread(left: list[Cell], right: list[Cell], width: int) -> list[Cell]:
    """Two parts of a line; the right one only if there is room."""
    used = sum(count_cells(cell.text) for cell in (*left, *right))
    return [*left, Cell(" " * (width - used)), *right] if used < width else left


class ClickPlace(NamedTuple):
    """A part of a line that can be clicked."""

    start: int
    end: int
    action: str


class ClickedLine(LinesWidget):
    """A line of words, each with an action."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.places: list[ClickPlace] = []

    async def on_click(self, event: Click) -> None:
        for place in self.places:
            if place.start <= event.x < place.end:
                await self.app.run_action(place.action)


class Tab(NamedTuple):
    panel: str
    title: str
    short: str
    rows: int


TAB_FORMS = (
    " {number} {title}{rows} ", "{number} {title}{rows} ", "{number} {short}{rows} ",
    "{number}{short}{rows} ", "{number} {short} ", "{number} ",
)  # fmt: skip


class TabLine(ClickedLine):
    """The panels, with their numbers and how many rows each has."""

    def __init__(self) -> None:
        super().__init__("tabs")
        self._tabs: Sequence[Tab] = ()
        self._current = ""

    def show(self, tabs: Sequence[Tab], current: str) -> None:
        self._tabs, self._current = tabs, current
        self.draw()

    def make_lines(self, width: int) -> list[list[Cell]]:
        """As much as there is room for: long names, short names, numbers of rows."""
        for form in TAB_FORMS:
            line = self._make_line(form)
            if sum(len(cell.text) for cell in line) <= width:
                break
        return [line]

    def _make_line(self, form: str) -> list[Cell]:
        line, at = [], 0
        self.places = []
        for number, tab in enumerate(self._tabs, 1):
            rows = f":{tab.rows}" if tab.rows else ""
            text = form.format(number=number, title=tab.title, short=tab.short, rows=rows)
            tone = Tone.BAD if tab.panel == "needs" and rows else Tone.PLAIN
            is_current = tab.panel == self._current
            line.append(Cell(text, Tone.TITLE if is_current else tone if rows else Tone.DIM))
            self.places.append(ClickPlace(at, at + len(text), f"panel('{tab.panel}')"))
            at += len(text)
        return line


class KeyLine(ClickedLine):
    """The keys of the panel, or for some seconds what an action did."""

    def __init__(self) -> None:
        super().__init__("keys")
        self._keys: Sequence[KeyUse] = ()
        self._message = Cell()

    def show(self, keys: Sequence[KeyUse]) -> None:
        self._keys = keys
        self.draw()

    def show_message(self, text: str, tone: Tone) -> None:
        self._message = Cell(text, tone)
        self.draw()

    @property
    def message(self) -> str:
        return self._message.text

    def make_lines(self, width: int) -> list[list[Cell]]:
        self.places = []
        if self._message.text:
            return [[self._message]]
        line: list[Cell] = []
        for key, text in choose_fitting(self._keys, width):
            at = sum(len(cell.text) for cell in line)
            cells = [Cell(first_name(key), Tone.TITLE), Cell(text)]
            line += cells
            self.places.append(ClickPlace(at, at + sum(len(one.text) for one in cells), key.action))
        return [line]


def first_name(key: KeyUse) -> str:
    return key.shown.split(" ")[0]


def choose_fitting(keys: Sequence[KeyUse], width: int) -> list[tuple[KeyUse, str]]:
    """The first keys, as many as there is room for, and always the last two: help and quit."""
    found = [(key, f" {key.label}  ") for key in keys]
    chosen, last = found[:-2], found[-2:]
    while chosen and sum(len(first_name(key) + text) for key, text in chosen + last) > width + 2:
        chosen.pop()
    return chosen + last
