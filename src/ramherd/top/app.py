"""The application: panels, keys, and the thread that reads once a second."""

import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.geometry import Size
from textual.suggester import SuggestFromList
from textual.widgets import Input
from textual.worker import WorkerFailed

from ramherd.config.load import Config
from ramherd.core.errors import RamherdError
from ramherd.core.procid import ProcId
from ramherd.strays.nouns import PsRow
from ramherd.top import job_actions as act
from ramherd.top.cells import Tone
from ramherd.top.confirm import Confirmation
from ramherd.top.key_bindings import KEYS, choose_keys, render_help
from ramherd.top.panels import BY_ID, PANELS
from ramherd.top.panels.job_cells import JOB_KEY
from ramherd.top.panels.stray_rows import describe_process
from ramherd.top.process_actions import reap
from ramherd.top.reading import Job, Reading
from ramherd.top.row_table import RowTable
from ramherd.top.screen_lines import KeyLine, StatusHead, Tab, TabLine
from ramherd.top.source import TopSource
from ramherd.top.text_page import DIFF_TONES, LOG_TONES, TextPage, Tones
from ramherd.top.verb_process import VerbProcess, run_verb

EVERY_S = 1.0
MESSAGE_S = 6.0
# From this size on, all panels are shown at once.
WIDE_COLUMNS, WIDE_ROWS = 140, 36
# Rows of "Needs you" above the runs.
NEEDS_ROWS, NEEDS_ROWS_WIDE = 3, 8
LOG_LINES = 1000
LEFT = ("needs", "runs", "queue", "ended")
# Shares of the height of a column.
WEIGHTS = {
    "runs": 3, "queue": 2, "ended": 2,
    "sessions": 2, "servers": 2, "strays": 2, "limits": 1, "events": 3,
}  # fmt: skip
RIGHT = ("sessions", "servers", "strays", "limits", "events")


class TopApp(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "top.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key.keys, key.action, key.what, show=False) for key in KEYS),
        *(
            Binding(str(number), f"panel('{panel.id}')", panel.title, show=False)
            for number, panel in enumerate(PANELS, 1)
        ),
    ]

    def __init__(self, source: TopSource, config: Config) -> None:
        super().__init__(ansi_color=True)
        self._source, self._config = source, config
        self._reading: Reading | None = None
        self._current = "runs"
        self._is_zoomed = False
        self._room = Size(80, 24)
        self._wake, self._over = threading.Event(), threading.Event()
        self._tables = {panel.id: RowTable(panel) for panel in PANELS}
        self._head, self._tabs, self._keys = StatusHead(), TabLine(), KeyLine()
        self._prompt = Input(id="prompt")
        self._prompt.cursor_blink = False
        self._accept: Callable[[str], None] = self._set_filter

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._tabs
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield from (self._tables[panel] for panel in LEFT)
            with Vertical(id="right"):
                yield from (self._tables[panel] for panel in RIGHT)
        yield self._prompt
        yield self._keys

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self._prompt.display = False
        self._room = self.size
        self._arrange()
        self.table.focus()
        self.run_worker(self._read_on, name="source", thread=True)

    def on_unmount(self) -> None:
        self._over.set()
        self._wake.set()

    # Reading.

    def _read_on(self) -> None:
        while not self._over.is_set():
            reading = self._source.read()
            if self._over.is_set():
                break
            self.call_from_thread(self.show_reading, reading)
            self._wake.wait(EVERY_S)
            self._wake.clear()
        self._source.close()

    def show_reading(self, reading: Reading) -> None:
        self._reading = reading
        self._head.show(reading)
        self._refresh_tables()

    def _refresh_tables(self) -> None:
        """The heights follow the rows."""
        reading, before = self._reading, self._shape
        if reading is None:
            return
        for table in self._tables.values():
            if table.display or table.panel.id == "needs":
                table.show(reading)
        if self._shape != before:
            self._arrange()
        self._show_tabs(reading)

    def _show_tabs(self, reading: Reading) -> None:
        rows = {panel.id: self._count_rows(panel.id, reading) for panel in PANELS}
        tabs = [
            Tab(panel.id, panel.title, panel.short or panel.title, rows[panel.id])
            for panel in PANELS
        ]
        self._tabs.show(tabs, self._current)

    def _count_rows(self, panel: str, reading: Reading) -> int:
        """Tables that are not shown are not made: their number of rows is enough."""
        if panel != "events" and (self._tables[panel].display or panel == "needs"):
            return self._tables[panel].count
        return COUNTS[panel](reading)

    @property
    def reading(self) -> Reading | None:
        """The one that is shown."""
        return self._reading

    def action_read_now(self) -> None:
        self._source.scan_soon()
        self._wake.set()

    # The arrangement of the panels.

    @property
    def table(self) -> RowTable:
        return self._tables[self._current]

    @property
    def _shows_all(self) -> bool:
        columns, rows = self._room
        return columns >= WIDE_COLUMNS and rows >= WIDE_ROWS and not self._is_zoomed

    @property
    def _shape(self) -> tuple[int, ...]:
        """Values that change the heights of panels: an empty one has a line."""
        empty = (bool(table.count) for table in self._tables.values())
        return (min(self._tables["needs"].count, NEEDS_ROWS_WIDE), *empty)

    def _arrange(self) -> None:
        needs = self._tables["needs"]
        for panel, table in self._tables.items():
            is_beside = table is needs and needs.count > 0 and self._current == "runs"
            table.display = self._shows_all or panel == self._current or is_beside
        most = NEEDS_ROWS_WIDE if self._shows_all else NEEDS_ROWS
        is_alone = self._current == "needs" and not self._shows_all
        needs.styles.height = "1fr" if is_alone else 3 + min(needs.count, most) - (not needs.count)
        for panel, weight in WEIGHTS.items():
            is_small = self._shows_all and not self._tables[panel].count and panel != "runs"
            self._tables[panel].styles.height = 3 if is_small else f"{weight}fr"
        for side in (LEFT, RIGHT):
            name = "left" if side is LEFT else "right"
            self.query_one(f"#{name}").display = any(self._tables[one].display for one in side)
        self._keys.show(choose_keys(self._current))

    def on_resize(self, event: Resize) -> None:
        """`size` is still the old one. Everything is drawn again: of several quick changes Textual
        sees the last alone, and if that is the size from before, it draws nothing, while the
        terminal has lost what was on it.
        """
        self._room = event.size
        if self._head.is_attached:
            self._arrange()
            self._refresh_tables()
            self.call_after_refresh(self._draw_all)

    def _draw_all(self) -> None:
        self.screen.refresh()

    def action_panel(self, panel: str) -> None:
        self._current = panel
        self._arrange()
        self._refresh_tables()
        self.table.focus()

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        if event.panel != self._current:
            self.action_panel(event.panel)

    def action_focus_next(self) -> None:
        """Tab, which Textual binds to this."""
        self.action_next_panel(1)

    def action_focus_previous(self) -> None:
        self.action_next_panel(-1)

    def action_next_panel(self, step: int) -> None:
        if len(self.screen_stack) > 1:
            return
        ids = [panel.id for panel in PANELS]
        self.action_panel(ids[(ids.index(self._current) + step) % len(ids)])

    def action_zoom(self) -> None:
        self._is_zoomed = not self._is_zoomed
        self.action_panel(self._current)

    # Moving, sorting and filtering.

    def action_move(self, rows: int) -> None:
        self.table.move(rows)

    def action_page(self, pages: int) -> None:
        self.table.move(pages * self.table.space)

    def action_edge(self, direction: int) -> None:
        self.table.move(direction * (1 << 30))

    def action_sort(self) -> None:
        self.table.sort_by_next()

    def action_reverse(self) -> None:
        order = self.table.order
        self.table.order = order._replace(is_reversed=not order.is_reversed)
        self.table.update()

    def action_tree(self) -> None:
        if not self.table.panel.has_tree:
            self._show_message(f"{self.table.panel.title} has no tree")
            return
        self.table.is_tree = not self.table.is_tree
        self.table.update()

    def action_clear(self) -> None:
        self._close_prompt()
        self.table.wanted = ""
        self.table.update()

    def action_filter(self) -> None:
        self._open_prompt("filter (!text: rows without it)", self._set_filter)
        self._prompt.value = self.table.wanted

    def action_jump(self) -> None:
        self._open_prompt("panel, or number or name of a job", self._jump)
        names = [name for panel in PANELS for name in panel.names]
        jobs = [] if self._reading is None else [job["name"] for job in all_jobs(self._reading)]
        self._prompt.suggester = SuggestFromList([*names, *jobs, "help", "quit"])

    def _open_prompt(self, placeholder: str, accept: Callable[[str], None]) -> None:
        self._accept = accept
        self._prompt.suggester = None
        self._prompt.placeholder, self._prompt.value = placeholder, ""
        self._prompt.display = True
        self._prompt.focus()

    def _close_prompt(self) -> None:
        self._prompt.display = False
        self.table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter works while it is typed."""
        if self._prompt.display and self._accept == self._set_filter:
            self._set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_prompt()
        self._accept(event.value.strip())

    def _set_filter(self, wanted: str) -> None:
        self.table.wanted = wanted
        self.table.update()

    def _jump(self, wanted: str) -> None:
        if wanted in ("q", "quit"):
            self.exit()
        elif wanted in ("?", "help"):
            self.action_help()
        elif wanted and not self._jump_to_panel(wanted) and not self._jump_to_job(wanted):
            self._show_message(f"no panel and no job {wanted!r}", Tone.BAD)

    def _jump_to_panel(self, wanted: str) -> bool:
        for panel in PANELS:
            if any(name.startswith(wanted.lower()) for name in panel.names):
                self.action_panel(panel.id)
                return True
        return False

    def _jump_to_job(self, wanted: str) -> bool:
        assert self._reading is not None
        for panel, jobs in (
            ("runs", self._reading.live), ("queue", self._reading.waiting),
            ("ended", self._reading.ended),
        ):  # fmt: skip
            for job in jobs:
                if wanted in (str(job["number"]), job["name"]):
                    self.action_panel(panel)
                    self.action_clear()
                    return self.table.select(f"{JOB_KEY}{job['id']}")
        return False

    # The selected row.

    def _find_job(self) -> Job | None:
        row = self.table.row
        if row is None or not row.key.startswith(JOB_KEY) or self._reading is None:
            return None
        wanted = row.key.removeprefix(JOB_KEY).partition(":")[0]
        return next((job for job in all_jobs(self._reading) if job["id"] == wanted), None)

    def _find_process(self) -> PsRow | None:
        row = self.table.row
        if row is None or not row.key.startswith("process:") or self._reading is None:
            return None
        _kind, pid, ticks = row.key.split(":")
        proc = ProcId(int(pid), int(ticks))
        rows = self._reading.processes.rows
        return next((one for one in rows if one.process.id == proc), None)

    def _job(self) -> Job | None:
        job = self._find_job()
        if job is None:
            self._show_message("select a job first")
        return job

    def on_row_table_opened(self, _event: RowTable.Opened) -> None:
        self.action_show()

    def action_show(self) -> None:
        if (job := self._find_job()) is not None:
            self._open_page(f"show {job['name']}", ["show", act.name_job(job), "--full"], ())
        elif (process := self._find_process()) is not None:
            self.push_screen(TextPage("process", lines=describe_process(process)))
        elif self.table.row is not None:
            words = [cell.text for cell in self.table.row.cells if cell.text]
            self.push_screen(TextPage(self.table.panel.title, lines=words))

    def action_log(self) -> None:
        if (job := self._job()) is not None:
            words = ["logs", "--follow", "-n", str(LOG_LINES), act.name_job(job)]
            self._open_page(f"log of {job['name']}", words, LOG_TONES, is_following=True)

    def action_diff(self) -> None:
        if (job := self._job()) is not None:
            words = ["diff", act.name_job(job)]
            self._open_page(f"changes of {job['name']}", words, DIFF_TONES, is_wrapped=False)

    def _open_page(
        self, title: str, words: list[str], tones: Tones, *, is_following: bool = False,
        is_wrapped: bool = True,
    ) -> None:  # fmt: skip
        page = TextPage(
            title, tones, start=partial(VerbProcess, words), is_following=is_following,
            is_wrapped=is_wrapped,
        )  # fmt: skip
        self.push_screen(page)

    def action_help(self) -> None:
        panels = [(number, panel.title) for number, panel in enumerate(PANELS, 1)]
        self.push_screen(TextPage("help", lines=render_help(panels)))

    # Changes.

    def action_cancel(self) -> None:
        if (job := self._job()) is not None:
            lines = [f"cancel {job['name']}?", "TERM, the grace period, then KILL"]
            self._ask("cancel", lines, partial(act.cancel, job))

    def action_recycle(self) -> None:
        if (job := self._job()) is not None:
            lines = [f"restart the agent of {job['name']}?", "it continues in the same session"]
            self._ask("recycle", lines, partial(act.recycle, job))

    def action_retry(self) -> None:
        if (job := self._job()) is not None:
            self._do(partial(act.retry, job))

    def action_allow(self) -> None:
        if (job := self._job()) is None:
            return
        rules = act.find_rules(job)
        if not rules:
            self._show_message(f"{job['name']} was denied nothing that a rule allows")
            return
        lines = [f"continue {job['name']} with these tools allowed?", *rules]
        self._ask("allow", lines, partial(act.allow, job))

    def action_pause(self) -> None:
        if (job := self._job()) is not None:
            self._do(partial(act.pause, job))

    def action_resume(self) -> None:
        if (job := self._job()) is not None:
            self._do(partial(act.resume, job))

    def action_pause_all(self) -> None:
        self._ask("pause", ["pause the service?", "running jobs go on"], act.pause_all)

    def action_resume_all(self) -> None:
        self._do(act.resume_all)

    def action_merge(self) -> None:
        if (job := self._job()) is not None:
            lines = [f"merge {job['name']} into the branch that is checked out here?"]
            self._ask("merge", lines, partial(self._merge, job))

    def _merge(self, job: Job) -> str:
        """In a thread. The page has every line of the verb; a conflict stays in its worktree."""
        done = run_verb(["merge", act.name_job(job)], max(self.size.width - 4, 20))
        lines = done.text.splitlines()
        page = TextPage(f"merge {job['name']}", lines=lines)
        self.call_from_thread(self.push_screen, page)
        return "not merged" if done.code else "merged"

    def action_reap(self) -> None:
        process = self._find_process()
        if process is None:
            self._show_message("select a process first (t lists them below their server)")
            return
        lines = ["end this process?", "", *describe_process(process)]
        self._ask("reap", lines, partial(reap, process.process.id, self._config))

    def action_hide(self) -> None:
        needs = self._tables["needs"]
        if self._current == "needs" and needs.row is not None:
            needs.hidden.add(needs.row.key)
            self._refresh_tables()

    def _ask(self, title: str, lines: list[str], action: act.Act) -> None:
        def answered(answer: bool | None) -> None:
            if answer:
                self._do(action)

        self.push_screen(Confirmation(title, lines), answered)

    def _do(self, action: act.Act) -> None:
        """In a thread: a service may take seconds to answer."""

        def work() -> None:
            try:
                text, tone = action(), Tone.GOOD
            except RamherdError as error:
                text, tone = act.describe_error(error), Tone.BAD
            self.call_from_thread(self._show_message, text, tone)
            self.action_read_now()

        self.run_worker(work, name="action", thread=True)

    def _show_message(self, text: str, tone: Tone = Tone.WARN) -> None:
        self._keys.show_message(text, tone)
        self.set_timer(MESSAGE_S, partial(self._end_message, text))

    def _end_message(self, text: str) -> None:
        """Unless another one came since."""
        if self._keys.message == text:
            self._keys.show_message("", Tone.PLAIN)

    # The end.

    def quit_on_signals(self) -> None:
        """The terminal is restored; `run` returns."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: self.call_later(self.exit))

    @property
    def error(self) -> Exception | None:
        """The defect that ended the application."""
        return self._exception

    def _handle_exception(self, error: Exception) -> None:
        """A defect ends the application without a page of Textual's: `main` prints one line."""
        if self._exception is None:
            self._exception = find_cause(error)
            self._return_code = 1
        self._exception_event.set()
        self.exit(return_code=1)
        self._close_messages_no_wait()


COUNTS: dict[str, Callable[[Reading], int]] = {
    "runs": lambda reading: len(reading.live),
    "queue": lambda reading: len(reading.waiting),
    "ended": lambda reading: len(reading.ended),
    "limits": lambda reading: len(reading.windows),
    "sessions": lambda reading: len(BY_ID["sessions"].make(reading).rows),
    "servers": lambda reading: len(BY_ID["servers"].make(reading).rows),
    "strays": lambda reading: len(BY_ID["strays"].make(reading).rows),
    # The newest ones: their number means nothing.
    "events": lambda _reading: 0,
}


def find_cause(error: Exception) -> Exception:
    """The error of a thread, without the one that Textual wraps around it."""
    cause = error.error if isinstance(error, WorkerFailed) else error
    return cause if isinstance(cause, Exception) else error


def all_jobs(reading: Reading) -> tuple[Job, ...]:
    return (*reading.live, *reading.waiting, *reading.ended)
