"""`ramherd ps` and `ramherd reap` as text: a sentence for each fact and warning, the table of `ps`
grouped by session or as a tree, the lines of `reap`, and rows as JSON.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pwd import getpwuid
from typing import Any

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import count, format_duration, format_size
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason
from ramherd.strays.judge.trends import Growth
from ramherd.strays.nouns import Evidence, Fact, Origin, PsRow, Saving, Verdict, WarningSign

SENTENCES = {
    Fact.STDIN_GONE: "its client is gone: nobody can write to its stdin, nobody reads its stdout",
    Fact.READER_GONE: "{name} started it, and nobody reads what it prints",
    Fact.WRAPPER_GONE: "the wrapper of this {name} is gone",
    Fact.RUN_OVER: "it belongs to run {name}, which is over",
    Fact.OWNER_GONE: "it was started by {name} (pid {number}), which is gone",
    Fact.CHILD_OF_ORPHAN: "started by the orphan {name} (pid {number})",
    Fact.REPARENTED: "inherited by {name} (pid {number}), which did not start it",
    Fact.LEADER_GONE: "the leader of its session ({number}) is gone",
    Fact.MARK: "it has the marker of {name}",
    Fact.DUPLICATE: "the same server runs again as pid {number}",
    Fact.IDLE: "idle for {time}",
    Fact.STDIN_CLOSED: "it runs on although its stdin was closed",
    Fact.CUT_OFF: "nobody can write to its stdin, nobody reads its stdout",
    Fact.RETAINED: "kept in the background by `{name} agents` (pid {number})",
    Fact.SUPERVISOR: "it keeps sessions in the background",
    Fact.TERMINAL: "it has a terminal",
    Fact.DISPLAY: "it has windows on a display",
    Fact.CLIENTS: "live clients: {number}",
    Fact.OWNER: "child of {name} (pid {number})",
    Fact.RUN_LIVE: "it belongs to run {name}",
    Fact.LISTENS: "it listens on {name}",
    Fact.BUSY: "it is busy: {percent} % of a core since the last look",
    Fact.WRITES: "it writes to {name}",
    Fact.CONNECTED: "it is connected to {name}",
    Fact.IN_TREE: "{name} (pid {number}) of its tree is in use or at work",
    Fact.NOHUP: "it ignores hangups (nohup)",
    Fact.KEPT: "it is to be kept ({name})",
    Fact.OTHER_USER: "it belongs to user {number}",
    Fact.UNREADABLE: "it cannot be examined",
    Fact.OURS: "it is this ramherd or one of its parents",
    Fact.RAMHERD: "it is a command of ramherd",
}
SIGNS = {
    "grows": "{name} (pid {pid}) holds {size}, {rate} more each minute; end it, then: {command}",
    "large": "{name} (pid {pid}) holds {size}, warn_at is {limit_size}; end it, then: {command}",
    "subagents": "{name} (pid {pid}) runs {number} subagents at once, warn_subagents is {most}",
    "server": "the MCP server {name} (pid {pid}) holds {size}, more than {limit_size}",
    "mcp": "{number} MCP servers run, warn_mcp is {most} (share them: ramherd mcp enable claude)",
    "node": "{number} node processes run, warn_node is {limit}",
    "memory": "{number} % of the memory is used, warn_memory is {limit}",
    "outlived": "processes that have outlived their session: {number} (ramherd ps lists them)",
}
HEAD = (
    "PID", "MEMORY", "GROWTH", "AGE", "IDLE", "USER", "VERDICT", "WHAT", "COMMAND", "WHERE", "WHY",
)  # fmt: skip
WHAT_CHARS, COMMAND_CHARS, WHERE_CHARS = 44, 40, 32
TITLES = {
    Origin.LEFT: "left by an agent",
    Origin.HAND: "started by hand, or by another program",
    Origin.RAMHERD: "ramherd and its jobs",
}
# Interpreters say nothing about a command: the script does.
INTERPRETERS = ("node", "bun", "deno", "python", "sh", "bash", "zsh", "dash")
WITH_VALUE = ("-X", "-W", "--import", "-r", "--require")


def render_evidence(evidence: Evidence) -> str:
    text = SENTENCES[evidence.fact]
    number = int(evidence.number)
    return text.format(
        name=printable(evidence.name), number=number, time=format_duration(evidence.number),
        percent=max(number, 1),
    )  # fmt: skip


def render_facts(found: Iterable[Evidence]) -> str:
    return "; ".join(render_evidence(one) for one in found)


def render_warning(sign: WarningSign) -> str:
    return SIGNS[sign.sign].format(
        name=printable(sign.name),
        pid=sign.pid,
        number=round(sign.number),
        limit=round(sign.limit),
        most=round(sign.limit) - 1,
        size=format_size(sign.number),
        limit_size=format_size(sign.limit),
        rate=format_size(sign.rate),
        command=printable(sign.command) or "none is known",
    )


def render_ps(rows: Sequence[PsRow], exact: frozenset[int], *, tree: bool) -> Iterator[str]:
    """Groups with most memory first; within a group, parents before their children."""
    if not rows:
        yield "no agents, MCP servers or their tools are running"
        return
    for title, members in groups(rows):
        total = sum(row.memory_bytes for row in members)
        yield f"{title}: {count(len(members), 'process', 'processes')}, {format_size(total)}"
        ordered = as_tree(members) if tree else [(row, 0) for row in by_memory(members)]
        yield from align([HEAD, *(cells(row, exact, depth) for row, depth in ordered)])
        yield ""
    total = sum(row.memory_bytes for row in rows)
    processes = count(len(rows), "process", "processes")
    yield f"{processes}, {format_size(total)}; {count_verdicts(rows)}"


def groups(rows: Sequence[PsRow]) -> list[tuple[str, list[PsRow]]]:
    found: dict[tuple[Origin, int], list[PsRow]] = {}
    for row in rows:
        session = row.session if row.origin is Origin.SESSION else 0
        found.setdefault((row.origin, session), []).append(row)
    titled = [(title_of(*key, members), members) for key, members in found.items()]
    return sorted(titled, key=lambda group: -sum(row.memory_bytes for row in group[1]))


def title_of(origin: Origin, session: int, members: Sequence[PsRow]) -> str:
    root = next((row for row in members if row.process.pid == session), None)
    if root is None:
        return TITLES.get(origin, TITLES[Origin.HAND])
    keeps = any(one.fact is Fact.SUPERVISOR for one in root.evidence)
    place = f" in {root.application}" if root.application else ""
    project = f", {shown_path(root.project or root.cwd)}" if root.cwd and not keeps else ""
    return f"{root.software}{' agents' if keeps else ''} {session}{place}{project}"


def by_memory(rows: Iterable[PsRow]) -> list[PsRow]:
    return sorted(rows, key=lambda row: -row.memory_bytes)


def as_tree(rows: Sequence[PsRow]) -> list[tuple[PsRow, int]]:
    pids = {row.process.pid for row in rows}
    children: dict[int, list[PsRow]] = {}
    for row in by_memory(rows):
        children.setdefault(row.process.ppid if row.process.ppid in pids else 0, []).append(row)
    found: list[tuple[PsRow, int]] = []
    edge = [(row, 0) for row in reversed(children.get(0, []))]
    while edge:
        row, depth = edge.pop()
        found.append((row, depth))
        edge += [(child, depth + 1) for child in reversed(children.get(row.process.pid, []))]
    return found


def cells(row: PsRow, exact: frozenset[int], depth: int) -> tuple[str, ...]:
    kind = "" if row.kind.value == row.software else f" {row.kind.value}"
    what = "  " * depth + printable(f"{row.software}{kind}{shown_ports(row)}")
    size = format_size(row.memory_bytes) + ("" if row.process.pid in exact else "*")
    return (
        str(row.process.pid),
        size,
        "-" if not row.growth_bytes else signed(row.growth_bytes),
        format_duration(row.age_s),
        "-" if row.idle_s is None else format_duration(row.idle_s),
        user_name(row.process.uid),
        row.verdict.value,
        what[:WHAT_CHARS],
        shown_command(row.command),
        shorten(shown_path(row.cwd), WHERE_CHARS) or "-",
        render_why(row),
    )


def render_why(row: PsRow) -> str:
    """Why it is a suspect, and why it is spared all the same."""
    spared = [one for one in row.spared if one not in row.evidence]
    if row.verdict is Verdict.SUSPECT and spared:
        return f"spared: {render_facts(spared)}; {render_facts(row.evidence)}"
    return render_facts(row.evidence)


def shown_ports(row: PsRow) -> str:
    return "".join(f" :{one}" for one in row.listens if one.isdecimal())


def shown_command(command: str) -> str:
    """Without its interpreter, and with a short path: `bin/vite.js dev`, `uvicorn app:main`."""
    words = strip_interpreter(command.split())
    if words and "/" in words[0]:
        words[0] = "/".join(words[0].rsplit("/", 2)[-2:])
    return printable(" ".join(words))[:COMMAND_CHARS] or "-"


def strip_interpreter(words: list[str]) -> list[str]:
    """What follows the interpreter and its options, if that is a script or a module."""
    if not words or not words[0].rpartition("/")[2].startswith(INTERPRETERS):
        return words
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in WITH_VALUE else 1
    at += at < len(words) and words[at] == "-m"
    is_command = "c" in "".join(word for word in words[1:at] if not word.startswith("--"))
    return words if at >= len(words) or is_command else words[at:]


def shown_path(path: str) -> str:
    home = os.path.expanduser("~")
    at_home = home != "/" and (path == home or path.startswith(f"{home}/"))
    return printable(f"~{path[len(home) :]}" if at_home else path)


def shorten(text: str, most: int) -> str:
    """The end of a path says the most."""
    return text if len(text) <= most else f"...{text[3 - most :]}"


def signed(size: int) -> str:
    return format_size(size) if size < 0 else f"+{format_size(size)}"


def user_name(uid: int) -> str:
    try:
        return getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def align(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Numbers to the right, words to the left, the last column at its own length."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        left = [cell.rjust(width) for cell, width in zip(row[:5], widths[:5], strict=True)]
        right = [cell.ljust(width) for cell, width in zip(row[5:-1], widths[5:-1], strict=True)]
        yield "  ".join([" ", *left, *right, row[-1]]).rstrip()


def count_verdicts(rows: Sequence[PsRow]) -> str:
    counts = [(verdict, sum(row.verdict is verdict for row in rows)) for verdict in Verdict]
    return ", ".join(f"{count} {verdict}" for verdict, count in counts if count)


def render_signs(warnings: Iterable[WarningSign], savings: Iterable[Saving]) -> Iterator[str]:
    for saving in savings:
        yield (
            f"copies: {printable(saving.software)} runs {saving.copies} times; "
            f"one shared copy would save {format_size(saving.saved_bytes)}"
        )
    for sign in warnings:
        yield f"warning: {render_warning(sign)}"


def render_growth(growth: Iterable[Growth]) -> Iterator[str]:
    for one in growth:
        which = "agents and MCP servers" if one.what == "processes" else "strays"
        names = f", most of all {', '.join(one.software)}" if one.software else ""
        yield (
            f"warning: {which} grow by {one.per_hour:.0f} an hour, "
            f"{one.ended_per_hour:.0f} an hour are reaped{names}"
        )


def row_json(row: PsRow, exact: frozenset[int]) -> Mapping[str, Any]:
    return {
        "pid": row.process.pid,
        "start_ticks": row.process.id.start_ticks,
        "ppid": row.process.ppid,
        "uid": row.process.uid,
        "software": row.software,
        "kind": row.kind,
        "verdict": row.verdict,
        "evidence": [{"fact": one.fact, "text": render_evidence(one)} for one in row.evidence],
        "spared": [{"fact": one.fact, "text": render_evidence(one)} for one in row.spared],
        "session": row.session or None,
        "application": row.application or None,
        "memory_bytes": row.memory_bytes,
        "memory_kind": "pss" if row.process.pid in exact else "anonymous",
        "age_s": round(row.age_s, 1),
        "idle_s": None if row.idle_s is None else round(row.idle_s, 1),
        "growth_bytes": row.growth_bytes,
        "orphan_since_s": row.orphan_s,
        "command": printable(row.command),
        "origin": row.origin,
        "cwd": printable(row.cwd) or None,
        "project": printable(row.project) or None,
        "listens": [printable(one) for one in row.listens],
    }


def render_plan(
    ends: Sequence[PsRow], later: Sequence[tuple[PsRow, float]], *, named: bool
) -> Iterator[str]:
    for row in ends:
        yield f"would end {row_line(row)}"
    for row, left_s in later:
        yield f"in {format_duration(left_s)}: {row_line(row)}"
    if not ends:
        waiting = f" yet; grace not over: {count(len(later), 'orphan')}" if later else ""
        yield f"nothing to end{waiting}"
        return
    what = count(len(ends), "process", "processes") if named else count(len(ends), "orphan")
    freed = format_size(sum(row.memory_bytes for row in ends))
    yield f"{what}, {freed} would come back; to end them: add --yes"


def render_ended(ended: Sequence[tuple[PsRow, str]]) -> Iterator[str]:
    for row, how in ended:
        yield f"{how}: {row_line(row)}"
    gone = [row for row, how in ended if how in ("ended", "killed")]
    freed = format_size(sum(row.memory_bytes for row in gone))
    yield f"{len(gone)} ended, {freed} came back" if ended else "nothing to end"


def render_logged(reason: Mapping[str, Any]) -> str:
    """A stored end: the outcome, the process, why, and its command."""
    command = f" [{shown_command(str(reason['command']))}]" if reason.get("command") else ""
    sentence = render_reason(reason_from_json(reason))
    return printable(f"{reason.get('outcome', 'ended')}: {sentence}{command}")


def render_refused(refused: Sequence[tuple[int, PsRow | None]]) -> Iterator[str]:
    for pid, row in refused:
        if row is None:
            yield f"not ended: {pid} is no agent, server or tool that ramherd knows"
        else:
            why = render_facts(row.spared) or render_facts(row.evidence)
            yield f"not ended: {pid} is {row.verdict}: {why}"


def row_line(row: PsRow) -> str:
    size, name = format_size(row.memory_bytes), printable(row.software)
    return f"{name} (pid {row.process.pid}, {size}): {render_facts(row.evidence)}"
