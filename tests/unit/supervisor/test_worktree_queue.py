"""Worktrees that are finished, with a store that cannot be read."""

from types import SimpleNamespace
from typing import Any, NoReturn, cast

from ramherd.core.agent_task import Tree
from ramherd.core.errors import StoreUnavailable
from ramherd.core.model import Brief, JobState
from ramherd.store.herd_queue import HerdQueue
from ramherd.supervisor.worktree_queue import WorktreeQueue
from support.make import job, status

TREE = Tree("/repo", "c0ffee", "/trees/a", "ramherd/a")


def refuse(*_args: Any) -> NoReturn:
    raise StoreUnavailable("the store is locked")


def make_queue(*, parents: tuple[str, ...] = ()) -> tuple[WorktreeQueue, list[Any]]:
    """Of one job that may merge its bases, and the calls that would have been recorded."""
    tree = Tree("/repo", "c0ffee", "/trees/b", "ramherd/b", parents=parents)
    asked = job("b", brief=Brief("claude", "do it", tree=tree))
    done = status(job("a", brief=Brief("claude", "do it", tree=TREE)), JobState.DONE)
    queue, recorded = HerdQueue([done, status(asked)]), list[Any]()
    store = SimpleNamespace(read=refuse)
    events = SimpleNamespace(
        writes=SimpleNamespace(store=store),
        record=lambda *args: recorded.append(args),
        hooks=SimpleNamespace(worktree_finished=lambda _job: None),
    )
    jobs = SimpleNamespace(
        queue=queue, ended_trees=[], agents=SimpleNamespace(runs=object()),
        release=lambda job: recorded.append(("release", job)),
    )  # fmt: skip
    parts = (None, jobs, events, SimpleNamespace(jobs={}))
    return WorktreeQueue(*cast("Any", parts)), recorded


def test_a_merge_waits_for_a_store_that_can_be_read() -> None:
    """The supervisor goes on, and the job stays in line."""
    queue, recorded = make_queue(parents=("id-a",))

    assert queue.advance(1.0) is False
    assert queue.advance(2.0) is False
    assert recorded == []


def test_jobs_go_on_when_the_store_cannot_be_read_at_the_end_of_a_worktree() -> None:
    """What became of it is recorded later, and no job waits for that."""
    queue, recorded = make_queue()
    ended = job("a", brief=Brief("claude", "do it", tree=TREE))
    queue._record_finished(ended, {"worktree": None, "branch": None})

    assert recorded[-1] == ("release", "id-a")
    assert recorded[0][2] == {"worktree": None, "branch": None}
