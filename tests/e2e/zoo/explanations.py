"""Why each kind of process in the zoo is ended or spared: the reasons to be given."""

from collections.abc import Iterable, Mapping
from typing import Any

# By the part of a label after `orphan:` or `keep:`. Several reasons: the processes of one tree.
ENDED = {
    "claude-tool": {"owner_gone", "child_of_orphan"},
    "claude-wait": {"owner_gone", "child_of_orphan"},
    "codex-tool": {"reader_gone", "child_of_orphan"},
    "codex-wait": {"reader_gone", "child_of_orphan"},
    "gemini-wait": {"reader_gone", "child_of_orphan"},
    "nohup-tool": {"owner_gone"},
    "npx": {"stdin_gone", "child_of_orphan"},
    "opencode-wait": {"owner_gone", "child_of_orphan"},
    "with-browser": {"stdin_gone", "child_of_orphan"},
    "with-child": {"stdin_gone", "child_of_orphan"},
}
SERVER_ENDED = {"stdin_gone"}
# The first reason of the spared, or of the live. None: it is not listed.
SPARED: dict[str, set[str | None]] = {
    "agent": {"cut_off"},
    "batch": {"writes"},
    "batch-read": {"reparented"},
    "claude-background": {"supervisor", "retained"},
    "claude-tool": {None},
    "client": {None},
    "closed-by-client": {"owner"},
    "codex-tool": {None},
    "cut-off-on-terminal": {"owner", None},
    "detached": {"reparented"},
    "foreign-run": {"cut_off"},
    "hand-job": {None},
    "hand-mcp": {"reparented"},
    "hand-server": {"listens"},
    "herdsman": {None},
    "hostile-name": {"owner"},
    "http": {"clients"},
    "job-below-server": {"busy", "in_tree"},
    "left-busy": {"busy"},
    "left-log": {"writes"},
    "left-server": {"listens"},
    "left-training": {"busy"},
    "live-server": {"owner"},
    "long-command": {"owner"},
    "look-alike": {"cut_off"},
    "look-alike-shell": {"cut_off", None},
    "network": {"listens"},
    "node-server-everything": {"owner"},
    "node-server-memory": {"owner"},
    "nohup-agent": {"reparented"},
    "nohup-daemon": {"nohup"},
    "npx": {"owner", None},
    "other-user": {"other_user"},
    "other-user-cut-off": {"stdin_gone"},
    "own-output": {"writes"},
    "page-in-use": {"clients"},
    "pattern": {"kept"},
    "pipe": {"owner"},
    "reused": {"reparented"},
    "setsid": {"owner"},
    "setsid-daemon": {"reparented"},
    "socketpair": {"owner"},
    "systemd": {None},
    "terminal": {"terminal", "owner"},
    "tmux": {"owner", None},
    "variable": {"kept"},
    "watcher": {"reparented"},
    "windows": {"display"},
}
# Below each agent: its shell, and the job. The steps of a build come and go.
BY_ENDING: dict[str, set[str | None]] = {
    "-build": {"busy", "in_tree", None},
    "-training": {"busy", "in_tree"},
    "-dev-server": {"listens", "in_tree"},
    "-live": {"owner", "reparented"},
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
        if kind == "orphan" and reason not in ENDED.get(name, SERVER_ENDED):
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
