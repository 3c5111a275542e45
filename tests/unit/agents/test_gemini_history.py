"""Tokens of a gemini that was stopped, from the history that it left."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.agents.gemini_history import MOST_BYTES, parse_last_run, read_last_run
from ramherd.agents.progress import Spent

SESSION = "4cd04747-b534-4cda-b243-12bdc0167141"


def entry(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def message(name: str, tokens_in: int | None, **more: Any) -> bytes:
    tokens = {} if tokens_in is None else {"tokens": {"input": tokens_in, "output": 10}}
    return entry(id=name, timestamp="t", type="gemini", **more, **tokens)


BEGIN = entry(sessionId=SESSION, kind="main")
ASKED = entry(id="u", timestamp="t", type="user", content='"tokens":{"input":7,"output":7}')
FIRST = [BEGIN, ASKED, message("a", None), message("a", 100), message("a", 100, toolCalls=[])]


def test_each_message_counts_once() -> None:
    """However often it was written, and whatever is said in it."""
    second = message("b", 200, content='"tokens":{"input":9,"output":9}')

    assert parse_last_run([*FIRST, second]) == Spent(300, 20)


def test_only_the_last_run_counts() -> None:
    """The one before was counted when it ended; its messages are written again without tokens."""
    again = entry(**{"$set": {"messages": [{"id": "a", "type": "gemini"}]}})

    assert parse_last_run([*FIRST, BEGIN, again, message("b", 50)]) == Spent(50, 10)


def test_a_line_in_parts_is_one() -> None:
    """Its tokens may be in any of them."""
    long = message("a", 100, content="x" * 1000)
    parts = [long[at : at + 300] for at in range(0, len(long), 300)]

    assert parse_last_run([BEGIN, *parts, message("b", 5)]) == Spent(105, 20)


@pytest.mark.parametrize("variable", ["HOME", "GEMINI_CLI_HOME"])
def test_the_history_is_found_by_its_session(tmp_path: Path, variable: str) -> None:
    """In the home of the run; where there is none, nothing is known."""
    env = {"HOME": str(tmp_path / "other"), variable: str(tmp_path)}
    assert read_last_run(SESSION, env) == Spent()

    chats = tmp_path / ".gemini/tmp/work/chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-11-16T03-38-ffffffff.jsonl").write_bytes(message("x", 1))
    (chats / "session-2026-11-16T03-38-4cd04747.jsonl").write_bytes(b"".join(FIRST))
    assert read_last_run(SESSION, env) == Spent(100, 10)


def test_of_a_long_history_the_end_is_read(tmp_path: Path) -> None:
    """It takes the loop's time."""
    chats = tmp_path / ".gemini/tmp/work/chats"
    chats.mkdir(parents=True)
    filler = entry(id="u", timestamp="t", type="user", content="x" * MOST_BYTES)
    file = chats / "session-1-4cd04747.jsonl"
    file.write_bytes(b"".join([BEGIN, message("a", 100), filler, message("b", 5)]))

    assert read_last_run(SESSION, {"HOME": str(tmp_path)}) == Spent(5, 10)
