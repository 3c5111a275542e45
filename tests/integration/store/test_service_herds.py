"""What the store knows of jobs with an agent, for the service that goes on with them."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.model import Brief, Job, JobState, Reason, Tree, Why
from ramherd.core.policies import Policy
from ramherd.store.events import read_event_page
from ramherd.store.herds import set_base, set_job, set_said
from ramherd.store.listing import read_herd
from ramherd.store.on_done import read_due_jobs, read_due_of_service
from ramherd.store.service_herds import (
    end_if_over,
    read_herd_costs,
    read_unfinished,
    set_worktree,
)
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_requests import queue_again, submit
from ramherd.store.sql import service as service_sql
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


def test_a_herd_is_stuck_when_all_that_is_left_waits_for_its_user(store: SqliteStore) -> None:
    """Not while a job runs, nor while one is about to be queued. A retry queues what is blocked."""
    a, b, c, d = jobs("H", "abcd")
    after = [a, b, replace(c, after=("a",)), replace(d, after=("c", "b"))]
    submit(store, store.path.parent, "H", after, None)
    conflict = Reason(Why.MERGE_CONFLICT, files="x")

    def is_stuck(name: str, state: JobState, reason: Reason = DONE) -> bool:
        queue = ServiceQueue(store)
        set_job(store, replace(queue[f"H-{name}"], state=state, reason=reason))
        before = count_stuck(store)
        end_if_over(store, "H", 1.0)
        return count_stuck(store) > before

    assert not is_stuck("b", JobState.RUNNING)
    assert not is_stuck("a", JobState.DONE)
    assert not is_stuck("c", JobState.WAITING, conflict)  # b runs
    assert is_stuck("b", JobState.DONE)
    assert not is_stuck("c", JobState.WAITING)  # it is after a, which is done
    assert is_stuck("c", JobState.WAITING, conflict)
    assert queue_again(store, "H-c") == ["H-c"]
    assert ServiceQueue(store)["H-c"].state is JobState.QUEUED
    assert queue_again(store, "H-d") == []
    herd = read_herd(store, "H")
    assert herd is not None
    assert herd["ended_s"] is None


def count_stuck(store: SqliteStore) -> int:
    return sum(event["kind"] == "herd_stuck" for event in read_event_page(store, 0, most=100))


def test_set_base_changes_nothing_else_of_a_job(store: SqliteStore) -> None:
    """The commit is there for the next service, and the names of variables for a retry."""
    tree = Tree("/repo", "c0ffee", "/trees/a", "ramherd/a", "part", parents=("H-b", "H-c"))
    given = replace(jobs("H", "a")[0], brief=Brief("claude", "do it", tree=tree))
    submit(store, store.path.parent, "H", [replace(given, env={"KEY": "x"})], None)
    before = ServiceQueue(store)["H-a"].job
    made = replace(tree, commit="beef", parents=())
    set_base(store, replace(given, brief=Brief("claude", "do it", tree=made)))
    after = ServiceQueue(store)["H-a"].job

    assert before.brief is not None
    assert after == replace(before, brief=replace(before.brief, tree=made))
    ((names,),) = store.read("SELECT json_extract(spec, '$.env_names') FROM jobs")
    assert names == '["KEY"]'


def test_what_a_herd_has_cost_is_added_up(store: SqliteStore) -> None:
    """Of its runs that have ended; where there is no limit nobody asks."""
    submit(store, store.path.parent, "H", jobs("H", "abc"), None, max_cost_usd=2.0)
    submit(store, store.path.parent, "F", jobs("F", "a"), None)
    for name in "ab":
        set_said(store, f"H-{name}", {"cost_usd": 9.0, "past": {"spent_usd": 0.25}})

    assert (read_herd_costs(store, "H"), read_herd_costs(store, "F")) == ((2.0, 0.5), (None, 0.0))


def test_long_lines_are_not_read_to_their_end(store: SqliteStore) -> None:
    """Neither jobs that wait for their API nor those that have ended are read one by one."""
    line = {"priority": 0, "now": 0.0, "longest": 1.0, "most": 5, "closed": "[]"}
    plans: dict[str, tuple[Any, str]] = {
        service_sql.IN_LINE: (line, "jobs_in_line"),
        service_sql.UNFINISHED_OF_HERD: (("H",), "jobs_unfinished"),
        service_sql.ALL_UNFINISHED: ((), "jobs_unfinished"),
    }

    for statement, (values, index) in plans.items():
        plan = store.read(f"EXPLAIN QUERY PLAN {statement}", values)
        assert any(index in row[3] for row in plan), plan


def test_a_few_due_commands_are_read_at_a_time(store: SqliteStore) -> None:
    """Those of jobs first, then that of their herd."""
    asked = [replace(one, on_done=("true",)) for one in jobs("H", "abc")]
    submit(store, store.path.parent, "H", asked, None, on_done="true")
    backlog = ServiceQueue(store)
    backlog.refill()
    for one in "abc":
        ended = replace(backlog[f"H-{one}"], state=JobState.DONE, reason=DONE, attempts=1)
        set_job(store, ended)
    end_if_over(store, "H", 1.0)
    store.commit()

    assert [due.job for due in read_due_of_service(store, 2)] == ["H-a", "H-b"]
    assert [due.job for due in read_due_jobs(store, "H", 9)] == ["H-a", "H-b", "H-c"]
    assert [due.job for due in read_due_of_service(store, 9)] == ["H-a", "H-b", "H-c", ""]
