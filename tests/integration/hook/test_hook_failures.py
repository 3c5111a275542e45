"""Whatever goes wrong in the hook, Claude goes on."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from integration.conftest import await_
from integration.hook.hooks import Session, room_for, session, waiting_hooks

__all__ = ["session"]  # a fixture: pytest finds it by its name here


def break_json(one: Session) -> None:
    one.tell({"name": "broken", "command": one.command, "event": "no JSON at all"})
    assert "the hook does not work" in one.await_end("broken")["systemMessage"]


def test_what_is_no_event_stops_nobody(session: Callable[..., Session]) -> None:
    """Exit 0, and a line; the next event works."""
    one = session()
    break_json(one)
    one.tell({"name": "list", "command": one.command, "event": "[1]"})
    one.await_end("list")
    assert "does not work" not in str(one.ask("SessionStart"))


def test_without_a_runtime_directory_claude_goes_on(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """It is told so when the session starts, and not with every subagent."""
    (tmp_path / "file").write_text("no directory")
    one = session(runtime_dir=str(tmp_path / "file/below"))
    said = one.ask("SessionStart")["systemMessage"]
    assert said.startswith("ramherd: the hook does not work, and subagents start without it: ")
    for name in ("first", "second"):
        one.call(name)
        assert one.await_end(name) == {}


def test_a_locked_ledger_stops_nobody(session: Callable[..., Session], tmp_path: Path) -> None:
    """Tried for a second; who holds the lock is said once."""
    one = session()
    one.ask("SessionStart")
    with closing(sqlite3.connect(tmp_path / "runtime/ledger.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        for name in ("first", "second"):
            one.call(name)
        said = [one.await_end(name) for name in ("first", "second")]
    assert sorted(map(bool, said)) == [False, True]
    assert f"locked by process {os.getpid()}" in str(said)


def test_a_subagent_that_waits_goes_on_waiting(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """There was no room for it: a ledger that is locked meanwhile makes none."""
    one = session(**room_for(1))
    one.call("first")
    one.await_end("first")
    one.call("second")
    await_(lambda: one.waiting() == ["second"], "it waits")
    with closing(sqlite3.connect(tmp_path / "runtime/ledger.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        time.sleep(2.5)  # longer than a hook waits for the lock
        assert len(waiting_hooks()) == 1
    one.ask("PostToolUseFailure", tool_name="Agent", tool_use_id="first")
    assert one.await_end("second") == {}
    assert one.slots() == ["second"]


def test_a_broken_ledger_is_begun_anew(session: Callable[..., Session], tmp_path: Path) -> None:
    """The one who finds it says so."""
    (tmp_path / "runtime/ledger.db").write_bytes(b"no database at all" * 99)
    one = session()
    one.call("first")
    assert "a new one was created" in one.await_end("first")["systemMessage"]
    assert one.slots() == ["first"]


def test_a_wrong_setting_is_said_once_and_left_out(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """The others count."""
    text = 'hook_wait = "soon"\nsubagent_memory = "1TiB"\n'
    (tmp_path / "project/ramherd.toml").write_text(text)
    one = session()
    one.call("first")
    said = one.await_end("first")
    place = "ramherd.toml, line 1, key 'hook_wait'"
    assert f"{place}: 'soon' is not a duration" in said["systemMessage"]
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    one.call("second")
    assert "systemMessage" not in one.await_end("second")
