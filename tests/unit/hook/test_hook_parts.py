"""The small parts of the hook."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.reasons import Reason, Why
from ramherd.decide.governor.subagent_slots import SlotChoice
from ramherd.hook import shown_messages
from ramherd.hook import subagent_sizes as learned
from ramherd.hook.call import read_claude_cap
from ramherd.hook.claude_process import is_wrapper
from ramherd.hook.messages import deny, describe_wait
from ramherd.hook.sessions_table import render_ended, render_sessions
from ramherd.store.subagent_slots import SessionState, SubagentRecord, WaiterRow

MIB = 1 << 20


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/bin/sh", "-c", "/usr/bin/python3 -P -m ramherd.hook 60 || true"], True),
        (["-bash", "-c", "python -m ramherd.hook"], True),
        (["/bin/bash"], False),
        (["claude", "-p", "look at ramherd.hook"], False),
        (["node", "cli.js", "--settings", "ramherd.hook"], False),
        ([""], False),
    ],
)
def test_only_the_shell_that_calls_us_is_passed_over(words: list[str], expected: bool) -> None:
    """A session may well have our name in its words."""
    assert is_wrapper(tuple(words)) is expected


def past(most: int) -> dict[str, Any]:
    return {"most_bytes": most, "agent": "a"}


def test_learned_memory_is_bounded(tmp_path: Path) -> None:
    """So many projects, so many of each; the oldest are forgotten."""
    for number in range(learned.PROJECTS + 5):
        learned.learn(str(tmp_path), f"/project/{number}", past(1))
    for _time in range(learned.RECENT + 5):
        learned.learn(str(tmp_path), "/project/5", past(1))
    known = learned.read(str(tmp_path))
    assert len(known) == learned.PROJECTS
    assert "/project/4" not in known
    assert list(known)[-1] == "/project/5"
    assert len(known["/project/5"]) == learned.RECENT
    assert [path.name for path in tmp_path.iterdir()] == [learned.NAME]


def test_the_estimate_follows_those_that_held_most(tmp_path: Path) -> None:
    """With a margin, never below the least, and only from enough of them."""
    state = str(tmp_path)
    for most in (10 * MIB, 200 * MIB, 20 * MIB):
        learned.learn(state, "/p", past(most))
    assert learned.estimate_bytes(state, "/p") is None
    learned.learn(state, "/p", past(0))
    assert learned.estimate_bytes(state, "/p") == 250 * MIB
    for _time in range(learned.RECENT):
        learned.learn(state, "/p", past(MIB))
    assert learned.estimate_bytes(state, "/p") == learned.LEAST_BYTES < learned.DEFAULT_BYTES


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"/p": 3}', '{"/p": [{"most": 1}]}'])
def test_a_file_that_is_not_understood_is_learned_anew(text: str, tmp_path: Path) -> None:
    """It is no reason to stop anybody."""
    (tmp_path / learned.NAME).write_text(text)
    assert learned.estimate_bytes(str(tmp_path), "/p") is None
    learned.learn(str(tmp_path), "/p", past(MIB))
    assert len(json.loads((tmp_path / learned.NAME).read_text())["/p"]) == 1


def test_each_session_is_told_once(tmp_path: Path) -> None:
    """Until it ends; a session id from outside is no path."""
    runtime = str(tmp_path)
    assert shown_messages.is_first(runtime, "s/../1", "text", "Stop")
    assert not shown_messages.is_first(runtime, "s/../1", "text", "Stop")
    assert shown_messages.is_first(runtime, "s/../1", "another", "Stop")
    assert shown_messages.is_first(runtime, "s2", "text", "Stop")
    shown_messages.forget(runtime, "s/../1")
    assert len(list((tmp_path / "said").iterdir())) == 1
    shown_messages.forget(runtime, "s2")
    assert list(tmp_path.iterdir()) == [tmp_path / "said"]


@pytest.mark.parametrize("why", [Why.NO_ROOM_BUDGET, Why.SOMEBODY_WAITS, Why.MAX_PARALLEL])
def test_the_model_is_told_what_to_do(why: Why) -> None:
    """How much there is, how many run, and what to do instead."""
    answer: Any = deny(
        SlotChoice(Reason(why, running=5, limit=5), 128 * MIB, 40 * MIB, 2, 5), 600.0
    )
    text = answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "after waiting 10m00s" in text
    assert "(running: 2 in this session, 5 on this machine)" in text
    assert "one at a time" in text
    assert ("40 MiB is free" in text) is (why is not Why.MAX_PARALLEL)


def test_sessions_are_shown_in_a_line_each() -> None:
    """What is used, what is leased, how many run and how many wait."""
    assert list(render_sessions([], 0.0)) == ["no session with the hook runs"]
    (line,) = render_sessions([SessionState(7, 150 * MIB, 406 * MIB, 2, [])], 0.0)
    assert line == "session of pid 7: 150 MiB used, 406 MiB leased; subagents: 2 running, 0 waiting"


def test_each_subagent_that_waits_has_a_line() -> None:
    """With its place, how long it has waited, and for what."""
    reason = Reason(Why.MAX_PARALLEL, running=2, limit=2)
    waits = (WaiterRow("owner", "call", 100.0, 115.0, 128 * MIB, reason), 3)
    _head, line = render_sessions([SessionState(7, 0, 0, 2, [waits])], 143.0)
    assert line == "  place 3, has waited 43s: 2 are running, and max_parallel is 2"


def test_subagents_that_ended_are_listed() -> None:
    """The last twenty, with their lifetime and the memory before and after."""
    assert list(render_ended([])) == []
    one = SubagentRecord(0.0, "s", "agent", "explore", "/p", 41.2, 145 * MIB, 164 * MIB, MIB)
    lines = list(render_ended([one] * 25))
    assert len(lines) == 21
    assert lines[-1].endswith("  explore  ran 41s  145 MiB -> 164 MiB  /p")


def test_a_long_wait_is_explained_to_the_user() -> None:
    """How long, and what it waited for."""
    cap = Reason(Why.SUBAGENT_CAP, running=20, limit=20, setting="max_parallel_session")
    assert describe_wait(SlotChoice(cap, MIB, MIB, 20, 20), 12.0) == (
        "a subagent waited 12s for its turn: `max_parallel_session` is 20 (ramherd hook status)"
    )
    room = Reason(Why.NO_ROOM_BUDGET)
    assert "12s for memory: it needs 2 MiB, but only 1 MiB is free" in describe_wait(
        SlotChoice(room, 2 * MIB, MIB, 1, 1), 12.0
    )


@pytest.mark.parametrize(
    ("text", "cap"), [("", 20), ("3", 3), ("0", 20), ("-1", 20), ("2.5", 20), ("many", 20)]
)
def test_claudes_cap_is_read_as_claude_reads_it(
    text: str, cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number from 1 on, else its default."""
    monkeypatch.setenv("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", text)
    assert read_claude_cap() == cap
