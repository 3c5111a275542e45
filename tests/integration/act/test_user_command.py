"""Commands of the user: what they are given, how they fail, and how they end."""

import os
import time
from pathlib import Path

import pytest

from integration.conftest import await_, ours
from ramherd.act.user_command import UserCommand, open_input

ENV = dict(os.environ)


def start(line: str, stdin: int | None = None) -> UserCommand:
    return UserCommand(("/bin/sh", "-c", line), ENV, time.monotonic(), stdin=stdin)


def wait_for(command: UserCommand) -> str:
    await_(lambda: command.receive(time.monotonic()) is not None, "the end of the command")
    why = command.receive(time.monotonic())
    assert why is not None
    return why


def test_a_command_reads_its_input(tmp_path: Path) -> None:
    """Of any size, from a file that has no name any more."""
    fd = open_input(tmp_path, "x", b"x" * 300_000)
    command = start(f"wc -c > {tmp_path}/size", fd)
    os.close(fd)

    assert wait_for(command) == ""
    assert (tmp_path / "size").read_text().strip() == "300000"
    assert [path.name for path in tmp_path.iterdir()] == ["size"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("exit 3", "exit status 3"),
        ("echo first; echo last >&2; exit 1", "exit status 1: last"),
        ("kill -TERM $$", "signal 15"),
        ("yes | head -c 1000000; echo end; exit 2", "exit status 2: end"),
    ],
)
def test_a_failure_is_told_with_the_last_line(line: str, why: str) -> None:
    """However much it printed."""
    assert wait_for(start(line)) == why


def test_a_command_that_hangs_is_ended_with_its_children() -> None:
    """After its time."""
    command = start("sleep 300 & sleep 300; true")
    await_(lambda: len(ours()) >= 2, "both sleep")

    assert command.receive(time.monotonic(), most_s=60.0) is None
    assert command.receive(time.monotonic() + 61.0, most_s=60.0) == "ended after 60 s"
    await_(lambda: not ours(), "nothing is left")
