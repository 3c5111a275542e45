"""The jobs of a herd: which is next, and which wait for others."""

import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Brief, JobState, JobStatus, Reason, Settle, Tree, Why
from ramherd.store.herd_queue import HerdQueue
from support.make import job, status

REASON = Reason(Why.INTERRUPTED, signals=1)


def herd(**after: tuple[str, ...]) -> HerdQueue:
    """Jobs in this order, each after those."""
    return HerdQueue(
        status(job(name, seq=seq, after=names), JobState.WAITING if names else JobState.QUEUED)
        for seq, (name, names) in enumerate(after.items(), 1)
    )


def end(roster: HerdQueue, name: str, state: JobState) -> list[str]:
    """The names of all whose standing changes by that."""
    new = replace(roster[f"id-{name}"], state=state)
    return [changed.job.name for changed in roster.change(new)]


def names(statuses: list[JobStatus]) -> list[str]:
    return [one.job.name for one in statuses]


def states(roster: HerdQueue) -> dict[str, JobState]:
    return {one.job.name: one.state for one in roster}


def test_the_queue_is_in_order_of_priority_then_of_the_file() -> None:
    """The higher priority first, whatever the order they come in."""
    jobs = [job("low", seq=1, priority=-1), job("a", seq=2), job("b", seq=3),
            job("high", seq=4, priority=7)]  # fmt: skip

    assert names(HerdQueue(status(one) for one in reversed(jobs)).queue) == [
        "high",
        "a",
        "b",
        "low",
    ]


def test_a_job_that_comes_back_keeps_its_place() -> None:
    """A retried or preempted job is not last in line."""
    roster = herd(a=(), b=(), c=())

    end(roster, "b", JobState.RUNNING)
    assert names(roster.queue) == ["a", "c"]
    end(roster, "b", JobState.QUEUED)
    assert names(roster.queue) == ["a", "b", "c"]


def test_a_job_is_queued_when_all_it_waits_for_are_done() -> None:
    """And takes its place by the file, not by the moment."""
    roster = herd(a=(), z=("a", "b"), b=())

    assert end(roster, "a", JobState.DONE) == ["a"]
    assert end(roster, "b", JobState.DONE) == ["b", "z"]
    assert roster["id-z"].reason == Reason(Why.DEPENDENCY_DONE, dependency="b")
    assert names(roster.queue) == ["z"]


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_a_job_that_does_not_work_out_cancels_all_that_follow(state: JobState) -> None:
    """Through any number of others; each says which one it waited for."""
    roster = herd(a=(), b=("a",), c=("b",), d=())

    assert end(roster, "a", state) == ["a", "b", "c"]
    assert roster["id-b"].reason.numbers == {"dependency": "a", "state": state.value}
    assert roster["id-c"].reason.numbers == {"dependency": "b", "state": "cancelled"}
    assert roster["id-d"].state is JobState.QUEUED


def with_tree(roster: HerdQueue, name: str) -> None:
    """A run of the job made its worktree."""
    brief = Brief("claude", "do it", tree=Tree("/repo", "c0ffee", f"/trees/{name}", name))
    before = roster[f"id-{name}"]
    list(roster.change(replace(before, job=replace(before.job, brief=brief), attempts=1)))


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED])
def test_a_job_waits_until_the_worktree_before_it_is_finished(state: JobState) -> None:
    """Whatever became of its job; a second time nothing follows."""
    roster = herd(a=(), b=("a",))
    with_tree(roster, "a")

    assert end(roster, "a", state) == ["a"]
    assert roster["id-b"].state is JobState.WAITING
    assert names(list(roster.release("id-a"))) == ["b"]
    assert list(roster.release("id-a")) == []


def test_nothing_follows_from_a_worktree_of_a_job_that_has_not_ended() -> None:
    """It is tried again, or is a job of another herd."""
    roster = herd(a=(), b=("a",))
    with_tree(roster, "a")

    assert list(roster.release("id-a")) == []
    assert list(roster.release("id-of-another-herd")) == []


def test_a_job_is_cancelled_once() -> None:
    """Two ways lead to it from the job that failed: side by side."""
    roster = herd(a=(), b=("a",), c=("a",), d=("b", "c"))

    assert Counter(end(roster, "a", JobState.FAILED)) == Counter("abcd")


def test_a_job_that_waits_for_two_in_a_row_is_cancelled_once() -> None:
    """After a and after b, which is itself after a: one event, and one reason."""
    roster = herd(a=(), b=("a",), c=("a", "b"))

    assert end(roster, "a", JobState.FAILED) == ["a", "b", "c"]


def test_a_long_line_of_jobs_can_be_cancelled() -> None:
    """A thousand jobs, each after the one before: Ctrl-C must not end in an error."""
    roster = herd(j0=(), **{f"j{n}": (f"j{n - 1}",) for n in range(1, 1000)})

    assert len(end(roster, "j0", JobState.CANCELLED)) == 1000


def test_settling_is_a_change_with_a_reason() -> None:
    """What `decide` asks for, and everything that follows from it."""
    roster = herd(a=(), b=("a",))

    changed = list(roster.apply(Settle("id-a", JobState.CANCELLED, REASON)))

    assert names(changed) == ["a", "b"]
    assert changed[0].reason == REASON


def test_a_herd_is_over_when_every_job_has_ended() -> None:
    """However it ended."""
    roster = herd(a=(), b=("a",), c=())

    assert not roster.is_over
    end(roster, "c", JobState.DONE)
    end(roster, "a", JobState.RUNNING)
    assert not roster.is_over
    end(roster, "a", JobState.FAILED)
    assert roster.is_over
    assert len(roster) == 3


@given(st.data())
def test_queue_and_counts_always_say_what_the_jobs_say(data: st.DataObject) -> None:
    """After any changes: the queue is sorted and complete, the counts are right."""
    size = data.draw(st.integers(1, 6))
    after = {
        f"j{n}": tuple(data.draw(st.sets(st.sampled_from([f"j{m}" for m in range(n)]))))
        if n
        else ()
        for n in range(size)
    }
    roster = herd(**after)
    for _ in range(data.draw(st.integers(0, 8))):
        name = data.draw(st.sampled_from(list(after)))
        if not roster[f"id-{name}"].state.is_final:
            end(roster, name, data.draw(st.sampled_from(JobState)))

    queued = [one for one in roster if one.state is JobState.QUEUED]
    assert roster.queue == sorted(queued, key=lambda one: one.job.seq)
    assert +roster.counts == Counter(states(roster).values())


def queue_of(*priorities: int) -> HerdQueue:
    return HerdQueue(
        status(job(f"j{seq}", seq=seq, priority=priority))
        for seq, priority in enumerate(priorities)
    )


def test_the_heads_are_the_first_of_each_priority() -> None:
    """In order; who starts or comes back changes them."""
    roster = queue_of(0, 5, 0, -2, 0, 5)
    assert names(roster.heads(2)) == ["j1", "j5", "j0", "j2", "j3"]

    end(roster, "j0", JobState.RUNNING)
    assert names(roster.heads(2)) == ["j1", "j5", "j2", "j4", "j3"]
    end(roster, "j0", JobState.QUEUED)
    assert names(roster.heads(1)) == ["j1", "j0", "j3"]
    assert queue_of().heads(3) == []


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(1, 5))
def test_heads_are_what_a_look_at_all_would_find(priorities: list[int], number: int) -> None:
    """However they are spread."""
    roster = queue_of(*priorities)

    every = [
        one
        for priority in sorted(set(priorities), reverse=True)
        for one in [one for one in roster.queue if one.job.priority == priority][:number]
    ]
    assert roster.heads(number) == every


def test_the_heads_of_a_long_queue_cost_no_more() -> None:
    """Ten thousand jobs are not looked at one by one: a few dozen are, by halving."""
    asked = 0

    class Counted(int):
        def __neg__(self) -> int:
            nonlocal asked
            asked += 1
            return -int(self)

    roster = queue_of(*(Counted(seq % 3) for seq in range(10_000)))
    asked = 0

    assert len(roster.heads(64)) == 3 * 64
    assert asked < 100


def test_who_may_not_start_yet_is_known_without_looking_through_the_queue() -> None:
    """From the moment that it comes back until it starts."""
    roster = herd(a=(), b=())
    later = replace(roster["id-a"], not_before_s=5.0)
    list(roster.change(later))
    assert list(roster.delayed.values()) == [later]
    list(roster.change(replace(later, state=JobState.RUNNING)))
    assert roster.delayed == {}


def test_a_herd_is_over_when_all_that_is_left_waits_for_its_user() -> None:
    """A conflict, and the jobs after it. Not while a job is about to be released."""
    roster = herd(a=(), b=("a",), c=("b",))
    blocked = replace(
        roster["id-b"], state=JobState.WAITING, reason=Reason(Why.MERGE_CONFLICT, files="x")
    )
    end(roster, "a", JobState.RUNNING)
    assert not roster.is_over
    end(roster, "a", JobState.DONE)
    list(roster.change(replace(blocked, reason=REASON)))
    assert not roster.is_over
    list(roster.change(blocked))

    assert roster.is_over
    assert states(roster)["c"] is JobState.WAITING
    end(roster, "b", JobState.QUEUED)
    assert not roster.is_over


def test_jobs_that_wait_for_their_api_keep_nobody_back() -> None:
    """Nor do jobs for later: the heads are those that may start."""
    asked = Brief("claude", "do it", account="a1")
    jobs = [job(f"c{n}", seq=n, brief=asked) for n in range(1, 6)]
    jobs += [job("later", seq=6, start_at_s=time.time() + 99), job("past", seq=7, start_at_s=1.0)]
    jobs += [job("free", seq=8), job("first", seq=9, priority=1), job("next", seq=10)]
    queue = HerdQueue(status(one) for one in jobs)
    (quota,) = queue.read_quotas()

    assert names(queue.heads(3)) == ["first", "c1", "c2", "c3"]
    queue.set_closed(frozenset([quota]))
    assert names(queue.heads(2)) == ["first", "past", "free"]
    queue.set_closed(frozenset())
    assert names(queue.heads(6)) == ["first", "c1", "c2", "c3", "c4", "c5", "past"]


def test_open_heads_follow_the_clock_and_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found once, until a job's time comes or a job leaves the line."""
    now_s = 1000.0
    monkeypatch.setattr(time, "time", lambda: now_s)
    jobs = [job(f"at{n}", seq=n, start_at_s=1000.0 + n) for n in (1, 2)]
    queue = HerdQueue(status(one) for one in [*jobs, job("now", seq=3), job("next", seq=4)])

    assert names(queue.heads(1)) == ["now"]
    assert queue.heads(1) is queue.heads(1)
    assert names(queue.heads(9)) == ["now", "next"]
    now_s = 1001.0
    assert names(queue.heads(9)) == ["at1", "now", "next"]
    list(queue.change(replace(queue["id-at1"], state=JobState.RUNNING)))
    assert names(queue.heads(9)) == ["now", "next"]
    now_s = 1002.0
    assert names(queue.heads(1)) == ["at2"]
