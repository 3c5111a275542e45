"""Any bytes at all, in any pieces: lines in bounded memory, and never an exception."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ramherd.agents import find_agent
from ramherd.agents.json_lines import (
    Events,
    Lines,
    LongLine,
    count,
    number,
    parse_event,
    sniff,
    tables,
)
from ramherd.agents.progress import Progress, next_progress
from ramherd.core.agent_names import AGENTS

DATA = Path(__file__).parents[2] / "data/agents"
REAL_EVENTS = [
    json.loads(line) for file in sorted(DATA.glob("*.jsonl")) for line in file.open("rb")
]
WORDS = sorted(
    {key for event in REAL_EVENTS for key in event}
    | {value for event in REAL_EVENTS for value in event.values() if isinstance(value, str)}
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def bent_events(draw: st.DrawFn) -> Any:
    """A real event in which something has another value, at any depth."""
    event = json.loads(json.dumps(draw(st.sampled_from(REAL_EVENTS))))
    place = event
    while isinstance(place, dict) and place:
        key = draw(st.sampled_from(sorted(place)))
        if draw(st.booleans()):
            place[key] = draw(values)
            break
        place = place[key]
    return event


@given(st.lists(bent_events() | values, max_size=6), st.sampled_from(AGENTS))
def test_no_event_hurts(events: list[Any], name: str) -> None:
    """Unknown, bent or senseless events are facts or nothing; counts stay counts."""
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    parser = Events(find_agent(name).reader())
    progress = next_progress(Progress(), [*parser.feed(data), *parser.close()])

    assert progress.turns >= 0
    assert progress.tokens_in >= 0
    assert progress.cost_usd >= 0


@given(st.binary(max_size=300), st.sampled_from(AGENTS))
def test_no_bytes_hurt(data: bytes, name: str) -> None:
    """Text between events, half of UTF-8, NULs: passed over."""
    parser = Events(find_agent(name).reader())

    facts = [*parser.feed(data), *parser.feed(b"\n{" + data), *parser.close()]

    assert next_progress(Progress(), facts).turns == 0


@given(st.lists(st.binary(max_size=60)), st.integers(1, 50))
def test_lines_are_what_a_split_would_give(pieces: list[bytes], most: int) -> None:
    """Short lines whole, long ones by their ends, whatever the pieces; memory stays bounded."""
    lines = Lines(line_bytes=most, end_bytes=4)
    found = []
    for piece in pieces:
        found += list(lines.feed(piece))
        assert len(lines.open) + len(lines.head) <= max(most, 8)
    found += list(lines.close())
    wanted = [line for line in b"".join(pieces).split(b"\n") if line.strip() or len(line) > most]

    assert len(found) == len(wanted)
    for line, want in zip(found, wanted, strict=True):
        if isinstance(line, LongLine):
            assert len(want) > most
            assert want.startswith(line.head)
            assert want.endswith(line.tail)
        else:
            assert line == want


def test_a_sniff_sees_the_structure_only() -> None:
    """What looks like a field inside of a text is none."""
    head = rb'{"type":"user","text":"{\"type\":\"result\",\"id\":\"no\"}'
    tail = rb'...","is_error":false,"cost":0.25,"id":"yes"}'

    assert sniff(LongLine(head, tail)) == {
        "type": "user", "is_error": "false", "cost": "0.25", "id": "yes",
    }  # fmt: skip


def test_what_is_no_event_is_none() -> None:
    """Warnings, lists, numbers, broken or endless JSON."""
    for line in (b"Warning: x", b"[1]", b"12", b'{"a":', b"{" * 5000, b'{"a":' * 5000, b"\xff{}"):
        assert parse_event(line) is None
    assert parse_event(b' {"a": "\xff"}') == {"a": "\ufffd"}


def test_numbers_that_count_nothing_are_zero() -> None:
    """Below zero, endless, true, text."""
    senseless: list[Any] = [-1, float("nan"), float("inf"), 10**40, True, "7", None, []]
    for value in senseless:
        assert number({"n": value}, "n") == 0
    assert count({"a": {"n": 7.9}}, "a", "n") == 7
    assert tables({"a": [1, {"b": 2}]}, "a") == [{"b": 2}]
