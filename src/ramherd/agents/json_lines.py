"""Parses any bytes into events, in bounded memory.

Of a line longer than `LINE_BYTES`, only the head and the tail are kept: their plain fields
(`sniff`) usually identify the event. Agents print such lines for images and long files.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramherd.agents import EventReader
    from ramherd.agents.progress import Fact

# 50 runs in the middle of a line hold at most 13 MB; longer lines were seen for images.
LINE_BYTES = 256 << 10
END_BYTES = 4 << 10
# Larger numbers are no counts.
MOST = 1e15
WORD_LENGTH = 200
# A quote inside a JSON text has a backslash before it, so this matches only the structure.
FIELD = re.compile(rb'(?<!\\)"(\w+)":\s*(?:"([^"\\]{0,200})"|(-?[0-9.eE+-]{1,30}|true|false))')


@dataclass(frozen=True, slots=True)
class LongLine:
    head: bytes
    tail: bytes


class Lines:
    """Splits a stream of pieces of any size."""

    def __init__(self, line_bytes: int = LINE_BYTES, end_bytes: int = END_BYTES) -> None:
        self.line_bytes = line_bytes
        self.end_bytes = end_bytes
        self.open = bytearray()
        self.head = b""

    def feed(self, data: bytes) -> Iterator[bytes | LongLine]:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self.append(data[start:end])
            yield from self.close()
            start = end + 1
        self.append(data[start:])

    def append(self, data: bytes) -> None:
        self.open += data
        if self.head:
            del self.open[: -self.end_bytes]
        elif len(self.open) > self.line_bytes:
            self.head = bytes(self.open[: self.end_bytes])
            del self.open[: -self.end_bytes]

    def close(self) -> Iterator[bytes | LongLine]:
        """The line so far: at a newline, or at the end, where it may be incomplete."""
        line, head = bytes(self.open), self.head
        self.open, self.head = bytearray(), b""
        if head:
            yield LongLine(head, line)
        elif line.strip():
            yield line


def sniff(line: LongLine) -> dict[str, str]:
    """The plain fields at the two ends of a line, the first of each name."""
    found: dict[str, str] = {}
    for name, text, plain in FIELD.findall(line.head + b"\n" + line.tail):
        found.setdefault(name.decode(), (text or plain).decode(errors="replace"))
    return found


class Events:
    """The output of one run, as facts. Anything that is not an event is skipped."""

    def __init__(self, reader: "EventReader") -> None:
        self.reader = reader
        self.lines = Lines()

    def feed(self, data: bytes) -> "list[Fact]":
        return [fact for line in self.lines.feed(data) for fact in self.facts_of(line)]

    def close(self) -> "list[Fact]":
        return [fact for line in self.lines.close() for fact in self.facts_of(line)]

    def facts_of(self, line: bytes | LongLine) -> "Iterator[Fact]":
        if isinstance(line, LongLine):
            yield from self.reader.read_long(sniff(line))
        elif (event := parse_event(line)) is not None:
            yield from self.reader.read(event)


def parse_event(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        event = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def table(event: Any, *path: str) -> Mapping[str, Any]:
    """The table at a path in an event, or an empty one."""
    for name in path:
        event = event.get(name) if isinstance(event, dict) else None
    return event if isinstance(event, dict) else {}


def tables(event: Any, *path: str) -> list[Mapping[str, Any]]:
    """The tables in the list at a path."""
    found = table(event, *path[:-1]).get(path[-1])
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def text(event: Any, *path: str) -> str:
    found = table(event, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def word(event: Any, *path: str) -> str:
    """An id or a name, cut to a maximum length."""
    return text(event, *path)[:WORD_LENGTH]


def number(event: Any, *path: str) -> float:
    """Zero if there is none; a number that cannot be a count (negative, infinite) is none."""
    found = table(event, *path[:-1]).get(path[-1])
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return found if 0 <= found < MOST else 0


def count(event: Any, *path: str) -> int:
    return int(number(event, *path))
