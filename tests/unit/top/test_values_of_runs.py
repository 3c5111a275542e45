"""The values that a frame is made from, put together from the store and from the service."""

from typing import Any

from ramherd.top.source import JobLists, with_live_values, with_service
from support.top_readings import HERD, make_job, make_waiter

RUN = {
    "job": make_job(1, "a")["id"], "name": "a", "attempt": 1, "used_bytes": 7, "grant_bytes": 9,
    "limit_bytes": None, "leak_bytes_per_s": 0.0, "held_s": None, "doing": "turn 2", "ran_s": 5.0,
}  # fmt: skip


def snapshot(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"at_s": 100.0, "runs": runs}


def test_a_job_gets_the_values_of_its_run() -> None:
    """The store has a sample that is older."""
    (job,) = with_live_values([make_job(1, "a", used_bytes=3)], snapshot(RUN))

    assert (job["used_bytes"], job["grant_bytes"], job["doing"]) == (7, 9, "turn 2")


def test_a_job_of_a_ramherd_run_keeps_its_sample() -> None:
    """The service knows nothing of it."""
    (job,) = with_live_values([make_job(2, "b", used_bytes=3)], snapshot())

    assert job["used_bytes"] == 3


def test_a_run_that_the_store_does_not_know_is_shown() -> None:
    """The service may use another store."""
    (job,) = with_live_values([], snapshot(RUN))

    assert (job["name"], job["number"], job["started_s"]) == ("a", None, 95.0)


def test_queued_jobs_of_the_service_wait_for_it() -> None:
    """Those of a `ramherd run` wait for something else."""
    submitted = {"why": "submitted"}
    jobs = (
        make_waiter(1, "a", submitted),
        make_waiter(2, "b", submitted, herd="other"),
        make_waiter(3, "c", submitted, state="waiting"),
    )
    lists = JobLists(jobs, service_herds=frozenset({HERD}))

    found = [job["reason"]["why"] for job in with_service(lists, is_up=False)]

    assert found == ["no_service", "submitted", "submitted"]
    assert with_service(lists, is_up=True) == jobs
