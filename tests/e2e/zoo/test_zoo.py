"""Strays among hundreds of real processes: all that are proved are ended, and nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import INSTALLED
from e2e.zoo.namespace import in_namespace
from e2e.zoo.place import has_node

HERE = Path(__file__).parent


def scene(name: str) -> dict[str, Any]:
    return in_namespace(str(HERE / "scenes.py"), name)


@pytest.fixture(autouse=True)
def needs_programs() -> None:
    """In CI the real servers and agents have to be there; elsewhere the zoo is smaller without."""
    if os.environ.get("CI") and not has_node():
        pytest.fail("no MCP servers from npm: make zoo-tools")
    if os.environ.get("CI") and not INSTALLED.is_dir():
        pytest.fail("the agents are not installed: make agents")


def test_the_zoo() -> None:
    """At least 98 in 100 orphans, not one wrong kill, and the right reason for each process."""
    figures = in_namespace(str(HERE / "zoo.py"), "--inside")

    assert figures["processes"] >= (480 if has_node() and INSTALLED.is_dir() else 250)
    assert figures["wrong"] == []
    assert figures["recall"] >= 0.98, figures["missed"]
    assert figures["unexplained"] == []


def test_nothing_is_ended_without_yes_or_before_its_grace() -> None:
    """Then TERM ends it, and the store has an event with the evidence."""
    told = scene("grace")

    assert told["lived"] == [True, True, False]
    assert [row["pid"] for row in told["dry"]["would_end"]] == [told["pid"]]
    assert told["dry"]["dry_run"]
    assert [row["pid"] for row in told["waiting"]["later"]] == [told["pid"]]
    assert [row["outcome"] for row in told["done"]["ended"]] == ["ended"]
    (event,) = told["events"]
    assert (event["why"], event["pid"], event["outcome"]) == ("abandoned", told["pid"], "ended")
    assert event["evidence"].startswith("its client is gone")


def test_one_that_ignores_term_is_killed() -> None:
    """So is what one starts in its last words; a stopped one goes on to end."""
    told = scene("stubborn")

    outcomes = {row["pid"]: row["outcome"] for row in told["done"]["ended"]}
    assert outcomes[told["pids"]["ignores"]] == "killed"
    assert outcomes[told["pids"]["stopped"]] == "ended"
    assert told["left"] == []


def test_what_is_only_suspect_is_ended_when_it_is_named() -> None:
    """What is live, or unknown, is refused."""
    told = scene("named")

    assert told["plain"]["ended"] == []
    assert told["lived"]
    assert told["alive"] == [False, True]
    assert told["done"]["refused"] == [told["agent"], 4000000]
    assert told["done"]["exit_code"] == 1


def test_reap_does_not_end_what_it_runs_in() -> None:
    """Its own ancestors are spared, whatever is proved of them."""
    told = scene("from_inside")

    assert told["alive"]
    assert told["told"]["ended"] == []


def test_what_ps_saw_below_an_agent_is_known_when_the_agent_is_gone() -> None:
    """A tool without any mark."""
    told = scene("recorded")

    assert told["pid"] in [row["pid"] for row in told["before"]["rows"]]
    assert [row["pid"] for row in told["done"]["ended"]] == [told["pid"]]
    assert told["done"]["ended"][0]["evidence"][0]["fact"] == "owner_gone"
    assert not told["alive"]
