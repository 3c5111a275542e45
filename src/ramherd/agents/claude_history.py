"""Tokens from Claude's own history. Its events count the output of a reply before it is complete,
and the cost comes only with the result, which a killed run does not print.

Each line is an entry, with one entry for each part of a message; `usage` is for the whole message.
The messages of subagents are in separate files, in a directory with the name of the session.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ramherd.decide.token_prices import TokenCounts

MESSAGE = re.compile(rb'"model":"([^"]+)","id":"([^"]+)"|"id":"([^"]+)","type":"message"')
MODEL = re.compile(rb'"model":"([^"]+)"')
TIME = re.compile(rb'"timestamp":"([^"]+)"')
COUNT = re.compile(
    rb'"(input_tokens|cache_creation_input_tokens|cache_read_input_tokens|output_tokens'
    rb'|ephemeral_1h_input_tokens)":(\d+)'
)
# For the session, and for all its subagents together. Reading blocks the supervisor: this much
# takes 10 ms, and 30 ms if it is only replies. If there is more, only the events are used.
MOST_BYTES = 4 << 20


class HistoryMessage(NamedTuple):
    id: bytes
    model: str
    time: bytes
    tokens: TokenCounts
    tokens_in: int
    tokens_out: int


def read_messages_since(session: str, first: str, env: Mapping[str, str]) -> list[HistoryMessage]:
    """The replies of a session and its subagents from the message `first` on; none if it is not
    found.
    """
    home = env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME') or os.path.expanduser('~')}/.claude"
    for file in Path(home, "projects").glob(f"*/{session}.jsonl"):
        main = list(parse_messages(read_end(file, MOST_BYTES)))
        ids = [message.id for message in main]
        if first.encode() in ids:
            since = main[ids.index(first.encode()) :]
            return [*since, *read_subagents(file.with_suffix("") / "subagents", since[0].time)]
    return []


def read_subagents(folder: Path, since: bytes) -> Iterator[HistoryMessage]:
    left = MOST_BYTES
    for file in sorted(folder.glob("agent-*.jsonl")):
        data = read_end(file, left)
        left -= len(data)
        yield from (message for message in parse_messages(data) if message.time >= since)
        if left <= 0:
            return


def read_end(file: Path, most: int) -> bytes:
    """Empty if the file cannot be read."""
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            opened.seek(max(size - most, 0))
            return opened.read(most)
    except OSError:
        return b""


def parse_messages(data: bytes) -> Iterator[HistoryMessage]:
    """Each message once; its last entry is the most complete."""
    found: dict[bytes, HistoryMessage] = {}
    for line in data.splitlines():
        usage = line.rfind(b'"usage":{')
        if usage < 0 or b'"type":"assistant"' not in line:
            continue
        named = MESSAGE.search(line)
        if named is None:
            continue
        model = MODEL.search(line)
        time = TIME.findall(line)
        counts: dict[bytes, int] = {}
        for name, number in COUNT.findall(line, usage):
            counts.setdefault(name, int(number))
        id_ = named[2] or named[3]
        found[id_] = message_of(
            id_, model[1].decode(errors="replace") if model else "", time[-1] if time else b"",
            counts,
        )  # fmt: skip
    yield from found.values()


def message_of(id_: bytes, model: str, time: bytes, counts: Mapping[bytes, int]) -> HistoryMessage:
    written_1h = counts.get(b"ephemeral_1h_input_tokens", 0)
    written = counts.get(b"cache_creation_input_tokens", 0)
    fresh, read = counts.get(b"input_tokens", 0), counts.get(b"cache_read_input_tokens", 0)
    output = counts.get(b"output_tokens", 0)
    tokens = TokenCounts(fresh, max(written - written_1h, 0), written_1h, read, output)
    return HistoryMessage(id_, model, time, tokens, fresh + written + read, output)
