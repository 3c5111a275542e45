"""One file for each panel: its rows, from the values of a reading. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from ramherd.top.cells import TableData
from ramherd.top.panels.ended_rows import make_ended_table
from ramherd.top.panels.event_rows import make_event_table
from ramherd.top.panels.needs_you import make_needs_table
from ramherd.top.panels.queue_rows import make_queue_table
from ramherd.top.panels.run_rows import make_run_table
from ramherd.top.panels.server_rows import make_server_table
from ramherd.top.panels.session_rows import make_session_table
from ramherd.top.panels.stray_rows import make_stray_table
from ramherd.top.panels.usage_rows import make_usage_table
from ramherd.top.reading import Reading


class Panel(NamedTuple):
    """`make` gets a reading, and `is_tree` if the panel has a tree. `names` are for `:`."""

    id: str
    title: str
    make: Callable[..., TableData]
    names: tuple[str, ...] = ()
    has_tree: bool = False
    short: str = ""

    def make_table(self, reading: Reading, *, is_tree: bool) -> TableData:
        options = {"is_tree": is_tree} if self.has_tree else {}
        return self.make(reading, **options)


PANELS = (
    Panel("needs", "Needs you", make_needs_table, ("needs", "you", "problems"), short="Needs"),
    Panel("runs", "Runs", make_run_table, ("runs", "running"), has_tree=True),
    Panel("queue", "Queue", make_queue_table, ("queue", "queued", "waiting"), has_tree=True),
    Panel(
        "ended", "Ended", make_ended_table, ("ended", "done", "failed", "results"), has_tree=True
    ),
    Panel("limits", "Limits", make_usage_table, ("limits", "usage", "windows")),
    Panel(
        "sessions", "Sessions", make_session_table, ("sessions", "subagents", "hook"), short="Sess"
    ),
    Panel("servers", "MCP", make_server_table, ("servers", "mcp", "gateway"), has_tree=True),
    Panel("strays", "Strays", make_stray_table, ("strays", "orphans", "ps"), has_tree=True),
    Panel("events", "Events", make_event_table, ("events", "log")),
)
BY_ID = {panel.id: panel for panel in PANELS}
