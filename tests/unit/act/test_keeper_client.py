"""Requests to the keeper: those that need a record wait for the store."""

import socket
from collections.abc import Iterator
from typing import cast

import pytest

from ramherd.act.keeper_client import AdoptedProcess, KeeperClient
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
