"""What the store knows of jobs with an agent, for the service that goes on with them."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.core.model import Brief, Job, JobState, Reason, Tree, Why
from ramherd.core.policies import Policy
from ramherd.store.herds import set_job, set_said
from ramherd.store.listing import read_herd
from ramherd.store.service_herds import (
    end_if_over,
    read_herd_costs,
    read_unfinished,
    set_worktree,
)
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_requests import submit
from ramherd.store.sqlite import SqliteStore
from support.make import job

DONE = Reason(Why.SAID_DONE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        yield made


def jobs(herd: str, names: str) -> list[Job]:
    return [
        replace(job(name, seq=seq), id=f"{herd}-{name}", herd=herd)
        for seq, name in enumerate(names, 1)
    ]


def test_a_busy_api_is_counted_over_a_refill(store: SqliteStore) -> None:
    """A job that waits ten minutes for it is not taken for one with a wrong clock."""
    submit(store, store.path.parent, "H", jobs("H", "ab"), None)
    backlog = ServiceQueue(store)
    backlog.refill()
    busy = replace(
        backlog["H-a"], reason=Reason(Why.OVERLOAD, what="busy"), overloads=7,
        not_before_s=time.monotonic() + Policy().overload_max_s,
    )  # fmt: skip
    for status in backlog.change(busy):
        set_job(store, status)
    store.commit()
    backlog.refill()

    assert [status.job.id for status in backlog.queue] == ["H-b"]
    assert ServiceQueue(store)["H-a"].overloads == 7


def test_a_herd_is_over_when_its_worktrees_are_finished(store: SqliteStore) -> None:
    """Whoever does it: what is left to do is in the store. A job that never ran has none."""
    tree = Tree("/repo", "c0ffee", "/trees/a", "ramherd/a")
    brief = Brief("claude", "do it", tree=tree)
    submit(
        store, store.path.parent, "H", [replace(one, brief=brief) for one in jobs("H", "ab")], None
    )
    backlog = ServiceQueue(store)
    for job_id, attempts in (("H-a", 1), ("H-b", 0)):
        ended = replace(backlog[job_id], state=JobState.DONE, reason=DONE, attempts=attempts)
        for status in backlog.change(ended):
            set_job(store, status)
    set_said(store, "H-a", {"turns": 1})
    end_if_over(store, "H", 1.0)
    assert [one.id for one in read_unfinished(store)] == ["H-a"]
    before = read_herd(store, "H")
    set_worktree(store, "H-a", {"worktree": None})
    end_if_over(store, "H", 2.0)
    after = read_herd(store, "H")

    assert before is not None
    assert after is not None
    assert (before["ended_s"], after["ended_s"] is None) == (None, False)
    assert read_unfinished(store) == []


def test_what_a_herd_has_cost_is_added_up(store: SqliteStore) -> None:
    """Of its runs that have ended; where there is no limit nobody asks."""
    submit(store, store.path.parent, "H", jobs("H", "abc"), None, max_cost_usd=2.0)
    submit(store, store.path.parent, "F", jobs("F", "a"), None)
    for name in "ab":
        set_said(store, f"H-{name}", {"cost_usd": 9.0, "past": {"spent_usd": 0.25}})

    assert (read_herd_costs(store, "H"), read_herd_costs(store, "F")) == ((2.0, 0.5), (None, 0.0))
