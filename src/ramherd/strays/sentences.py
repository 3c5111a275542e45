"""Strays in words: a sentence for each fact, and for each warning sign."""

from collections.abc import Iterable

from ramherd.core.units import format_duration, format_size
from ramherd.strays.nouns import Evidence, Fact, WarningSign

SENTENCES = {
    Fact.STDIN_GONE: "its client is gone: nobody can write to its stdin, nobody reads its stdout",
    Fact.READER_GONE: "{name} started it, and nobody reads what it prints",
    Fact.WRAPPER_GONE: "the wrapper of this {name} is gone",
    Fact.RUN_OVER: "it belongs to run {name}, which is over",
    Fact.OWNER_GONE: "it was started by {name} (pid {number}), which is gone",
    Fact.CHILD_OF_ORPHAN: "started by the orphan {name} (pid {number})",
    Fact.REPARENTED: "inherited by {name} (pid {number}), which did not start it",
    Fact.LEADER_GONE: "the leader of its session ({number}) is gone",
    Fact.MARK: "it bears the mark of {name}",
    Fact.DUPLICATE: "the same server runs again as pid {number}",
    Fact.IDLE: "idle for {time}",
    Fact.STDIN_CLOSED: "its stdin was closed, and it goes on",
    Fact.TERMINAL: "it has a terminal",
    Fact.DISPLAY: "it has windows on a display",
    Fact.CLIENTS: "it has {number} live clients",
    Fact.OWNER: "child of {name} (pid {number})",
    Fact.RUN_LIVE: "it belongs to run {name}",
    Fact.LISTENS: "it listens for clients",
    Fact.NOHUP: "it ignores hangups (nohup)",
    Fact.OTHER_USER: "it is of user {number}",
    Fact.UNREADABLE: "it cannot be looked at",
    Fact.OURS: "it is this ramherd or above it",
}
SIGNS = {
    "grows": "{name} (pid {pid}) holds {size}, {rate} more each minute; end it, then: {command}",
    "large": "{name} (pid {pid}) holds {size}, warn_at is {limit_size}; end it, then: {command}",
    "subagents": "{name} (pid {pid}) runs {number} subagents at once, warn_subagents is {most}",
    "mcp": "{number} MCP servers run, warn_mcp is {most}",
    "node": "{number} node processes run, warn_node is {limit}",
    "memory": "{number} % of the memory is used, warn_memory is {limit}",
    "outlived": "{number} processes have outlived their session",
}


def render_evidence(evidence: Evidence) -> str:
    text = SENTENCES[evidence.fact]
    number = int(evidence.number)
    return text.format(
        name=printable(evidence.name), number=number, time=format_duration(evidence.number)
    )


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


def printable(text: str) -> str:
    """Names and command lines are bytes of any kind: none of them moves the cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
