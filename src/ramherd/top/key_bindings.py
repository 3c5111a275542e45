"""The keys: one table, for the bindings, the line at the bottom and the page of `?`."""

from typing import NamedTuple


class KeyUse(NamedTuple):
    """`panels` are the panels in which the key does something; none: everywhere. With a `label` the
    key is in the line at the bottom.
    """

    keys: str
    action: str
    what: str
    label: str = ""
    panels: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """As a user types it."""
        return " ".join(NAMES.get(key, key) for key in self.keys.split(","))


NAMES = {
    "slash": "/", "colon": ":", "question_mark": "?", "shift+tab": "Shift-Tab", "tab": "Tab",
    "enter": "Enter", "escape": "Esc", "down": "Down", "up": "Up", "pagedown": "PgDn",
    "pageup": "PgUp", "home": "Home", "end": "End", "ctrl+r": "Ctrl-R", "ctrl+c": "Ctrl-C",
}  # fmt: skip
JOBS = ("needs", "runs", "queue", "ended", "events")
MOVES = (
    KeyUse("down,j", "move(1)", "down"),
    KeyUse("up,k", "move(-1)", "up"),
    KeyUse("pagedown,space", "page(1)", "a page down"),
    KeyUse("pageup,b", "page(-1)", "a page up"),
    KeyUse("home,g", "edge(-1)", "to the first row"),
    KeyUse("end,G", "edge(1)", "to the last row"),
)
JOB_KEYS = (
    KeyUse("enter", "show", "everything about the job or process", "show"),
    KeyUse("l", "log", "follow the readable log of the job", "log", JOBS),
    KeyUse("d", "diff", "the changes of the job", "diff", ("runs", "ended", "needs")),
    KeyUse("m", "merge", "merge the changes of the job into your branch", "merge", ("ended",)),
    KeyUse("c", "cancel", "cancel the job", "cancel", ("runs", "queue")),
    KeyUse("r", "retry", "run the failed job again", "retry", ("needs", "ended")),
    KeyUse("a", "allow", "retry the job with the denied tools allowed", "allow", ("needs",)),
    KeyUse("R", "recycle", "restart the agent in the same session", "recycle", ("runs",)),
    KeyUse("p", "pause", "do not start the queued job", "pause", ("queue",)),
    KeyUse("u", "resume", "start the paused job again", "resume", ("queue",)),
    KeyUse("x", "reap", "end the process, after its evidence", "reap",
           ("strays", "servers", "sessions")),
    KeyUse("h", "hide", "hide the row until top ends", "hide", ("needs",)),
)  # fmt: skip
SCREEN_KEYS = (
    KeyUse("slash", "filter", "filter the rows (!text: rows without it)", "filter"),
    KeyUse("colon", "jump", "jump to a panel or a job", "jump"),
    KeyUse("s", "sort", "sort by the next column", "sort"),
    KeyUse("S", "reverse", "reverse the order"),
    KeyUse("t", "tree", "jobs below their herd, processes below their parents", "tree"),
    KeyUse("z", "zoom", "one panel alone, or all", "zoom"),
    KeyUse("tab", "focus_next", "the next panel"),
    KeyUse("shift+tab", "focus_previous", "the panel before"),
    KeyUse("P", "pause_all", "pause the service: no job starts"),
    KeyUse("U", "resume_all", "resume the service"),
    KeyUse("ctrl+r", "read_now", "read everything now"),
    KeyUse("escape", "clear", "remove the filter"),
    KeyUse("question_mark", "help", "this page", "help"),
    KeyUse("q,ctrl+c", "quit", "quit", "quit"),
)
KEYS = (*MOVES, *JOB_KEYS, *SCREEN_KEYS)


def choose_keys(panel: str) -> list[KeyUse]:
    """The keys for the line at the bottom, those of the panel first."""
    return [key for key in (*JOB_KEYS, *SCREEN_KEYS) if key.label and fits(key, panel)]


def fits(key: KeyUse, panel: str) -> bool:
    return not key.panels or panel in key.panels


def render_help(panels: list[tuple[int, str]]) -> list[str]:
    lines = ["KEYS", ""]
    for title, keys in (("move", MOVES), ("the selected row", JOB_KEYS), ("screen", SCREEN_KEYS)):
        lines += [title, *(f"  {key.shown:<14}{key.what}" for key in keys), ""]
    lines += ["panels", *(f"  {number:<14}{title}" for number, title in panels), ""]
    lines += [
        "The mouse works: click a row, a title of a column, a panel or a key.",
        "In a log: f follows, w wraps, / filters, Esc or q goes back.",
    ]
    return lines
