"""Requests to the keeper: those that need a record wait for the store."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from ramherd.act.keeper_client import (
    ERROR_CHARS,
    AdoptedProcess,
    KeeperClient,
    describe_end,
    read_last_line,
)
from ramherd.core.model import ProcId


@pytest.fixture
def link() -> Iterator[KeeperClient]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield KeeperClient(ours, cast("AdoptedProcess", None), ProcId(1, 1), is_adoptable=True)


def test_a_start_waits_for_the_store(link: KeeperClient) -> None:
    """Until then there is nothing to send: the loop is not woken for it."""
    link.send("spawn", run="R1")
    assert not link.has_more_to_send

    link.release()
    assert link.has_more_to_send


def test_other_requests_do_not_wait_for_the_store(link: KeeperClient) -> None:
    """Runs end on a full disk."""
    link.send("spawn", run="R1")
    link.send("close", run="R2")

    assert link.has_more_to_send


@pytest.mark.parametrize(
    "start", [{"do": "spawn", "run": "R1"}, {"do": "pass", "run": "R0", "to": "R1"}]
)
def test_requests_about_one_run_stay_in_order(link: KeeperClient, start: dict[str, str]) -> None:
    """What is asked of a run that has not started comes after its start."""
    link.send(**start)
    link.send("hang_up", run="R1")

    assert not link.has_more_to_send


@pytest.mark.parametrize(
    "start", [{"do": "spawn", "run": "R1"}, {"do": "pass", "run": "R0", "to": "R1"}]
)
def test_a_start_is_withdrawn_until_the_store_has_it(
    link: KeeperClient, start: dict[str, str]
) -> None:
    """Then it is never sent; afterwards it is too late."""
    link.send(**start)
    assert not link.withdraw("R2")
    assert link.withdraw("R1")
    assert not link.withdraw("R1")
    link.release()
    assert not link.has_more_to_send

    link.send(**start)
    link.release()
    assert not link.withdraw("R1")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"Traceback:\n  a\nMemoryError\n", "MemoryError"),
        (b"not \xff text\n\n  \n", "not \ufffd text"),
        (b"x" * 10_000, "x" * ERROR_CHARS),
        (b"", ""),
    ],
)
def test_the_cause_of_a_failed_start_is_the_last_line_that_it_printed(
    tmp_path: Path, text: bytes, found: str
) -> None:
    """Not what an earlier keeper printed to the same file."""
    path = tmp_path / "keeper.err"
    path.write_bytes(b"an old error\n" + text)

    assert read_last_line(path, len(b"an old error\n")) == found


def test_a_keeper_that_printed_nothing_is_described_by_its_exit(tmp_path: Path) -> None:
    """On a full disk it has no file to print to."""
    assert read_last_line(tmp_path / "keeper.err", 0) == ""
    assert [describe_end(status) for status in (0, 1, -9)] == [
        "exit status 0", "exit status 1", "ended by signal 9",
    ]  # fmt: skip


def test_a_new_keeper_works_from_its_first_message_on() -> None:
    """Half a line is none."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = cast("AdoptedProcess", None)
        made = KeeperClient(ours, process, ProcId(1, 1), is_adoptable=True, has_answered=False)
        theirs.sendall(b'{"did": "pong",')
        made.receive()
        assert not made.has_answered
        theirs.sendall(b' "run": ""}\n')
        assert made.receive() == [{"did": "pong", "run": ""}]

    assert made.has_answered
