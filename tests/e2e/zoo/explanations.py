"""Why each kind of process in the zoo is ended or spared: the reasons to be given."""

from collections.abc import Iterable, Mapping
from typing import Any

# By the part of a label after `orphan:` or `keep:`; the longest beginning counts.
ENDED = {
    "": {"stdin_gone", "child_of_orphan"},
    "claude-tool": {"owner_gone", "child_of_orphan"},
    "codex-tool": {"reader_gone", "child_of_orphan"},
    "nohup-tool": {"owner_gone"},
    "claude-wait": {"owner_gone", "child_of_orphan"},
    "codex-wait": {"reader_gone", "owner_gone", "child_of_orphan"},
    "gemini-wait": {"reader_gone", "owner_gone", "child_of_orphan"},
    "opencode-wait": {"reader_gone", "owner_gone", "child_of_orphan"},
}
WORK = {"listens", "busy", "writes", "connected", "in_tree"}
# The first reason of the spared, or of the live. None: it is not listed.
SPARED: dict[str, set[str | None]] = {
    "agent": {"reparented", "cut_off"},
    "batch": {"reparented", "writes"},
    "claude-background": {"supervisor", "retained", "owner", None},
    "claude-tool": {"owner", None},
    "codex-tool": {"owner", None},
    "closed-by-client": {"owner", None},
    "cut-off-on-terminal": {"terminal", "owner", None},
    "detached": {"reparented", None},
    "foreign-run": {"cut_off", "mark", "reparented"},
    "hand-job": {None},
    "hand-mcp": {"reparented"},
    "hand-server": {"listens"},
    "herdsman": {None},
    "hostile-name": {"owner", None},
    "http": {"clients", "listens"},
    "job-below-server": {"busy", "in_tree"},
    "long-command": {"owner", None},
    "look-alike": {"cut_off", None},
    "network": {"listens"},
    "node-server-everything": {"owner", None},
    "node-server-memory": {"owner", None},
    "nohup-daemon": {"nohup", "reparented"},
    "npx": {"owner", None},
    "other-user": {"stdin_gone", "other_user", "unreadable", "reparented"},
    "own-output": {"writes"},
    "page-in-use": {"clients"},
    "pattern": {"kept"},
    "pipe": {"owner", None},
    "reused": {"reparented"},
    "setsid": {"owner", None},
    "setsid-daemon": {"reparented"},
    "socketpair": {"owner", None},
    "systemd": {None},
    "terminal": {"terminal", "owner", None},
    "tmux": {"terminal", "owner", None},
    "variable": {"kept"},
    "watcher": {"reparented"},
    "windows": {"display"},
}
BY_ENDING: dict[str, set[str | None]] = {
    "-build": {"busy", "in_tree", "connected", "writes", "owner", None},
    "-training": {"busy", "writes", "in_tree"},
    "-dev-server": {"listens", "in_tree"},
    "-left": {"busy", "writes", "listens", "nohup", "in_tree", "reparented"},
    "-live": {"owner", "reparented", "idle"},
}
Made = Mapping[tuple[int, int], str]


def find_unexplained(
    made: Made, ended: Iterable[dict[str, Any]], rows: Iterable[dict[str, Any]]
) -> list[str]:
    """`LABEL: REASON` of each process with a reason that it should not have, once."""
    found = set()
    for row in ended:
        kind, _colon, name = made.get((row["pid"], row["start_ticks"]), "").partition(":")
        reason = row["evidence"][0]["fact"]
        if kind == "orphan" and reason not in ENDED.get(name, ENDED[""]):
            found.add(f"orphan:{name}: {reason}")
    shown = {(row["pid"], row["start_ticks"]): row for row in rows}
    for proc, label in made.items():
        kind, _colon, name = label.partition(":")
        reason_to_keep = find_reason(shown.get(proc))
        if kind == "keep" and reason_to_keep not in expected(name):
            found.add(f"{label}: {reason_to_keep}")
    return sorted(found)


def expected(name: str) -> set[str | None]:
    endings = (reasons for ending, reasons in BY_ENDING.items() if name.endswith(ending))
    return SPARED.get(name) or next(endings, set())


def find_reason(row: dict[str, Any] | None) -> str | None:
    if row is None:
        return None
    facts = row["spared"] if row["verdict"] == "suspect" and row["spared"] else row["evidence"]
    return str(facts[0]["fact"]) if facts else None
