"""All jobs, with the values of their live runs: from the service, or from the store if none is
running.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from ramherd.cli.job_names import find_herd
from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import Client, is_running
from ramherd.client.shapes import HerdInfo, JobInfo
from ramherd.config.paths import runtime_path
from ramherd.core.errors import UsageError
from ramherd.core.reasons import JobState, Why
from ramherd.decide.start_pause import explain_no_service
from ramherd.store.herds import read_lost_herds
from ramherd.store.listing import list_herds, list_jobs
from ramherd.store.protocol import Store
from ramherd.store.service_requests import read_paused_s

PAGE = 1000
MOST_HERDS = 1000
PAUSED = (Why.PAUSED, Why.JOB_PAUSED)
# Values that the service has of a live run.
LIVE = ("used_bytes", "grant_bytes", "held_s", "doing")
NOT_LIVE: Mapping[str, Any] = {"grant_bytes": None, "held_s": None, "doing": ""}


class JobList(NamedTuple):
    """`paused_s` is the time at which the service was paused, None if it is not; `snapshot` is the
    service's, None if none is running.
    """

    jobs: list[dict[str, Any]]
    paused_s: float | None
    snapshot: dict[str, Any] | None


def read_job_list(herd: str | None = None, *, is_all: bool = False) -> JobList:
    """The jobs of a herd, or of all herds that have not ended; with `is_all`, of all. An unknown
    herd is a UsageError.
    """
    with closing(open_to_read()) as store:
        client = Client() if is_running() else None
        named = None if herd is None else find_named_herd(store, client, herd)
        if client is None:
            jobs = list(read_stored_jobs(store, named, is_all=is_all))
            return JobList(jobs, read_paused_s(store), None)
    snapshot = client.snapshot()
    live = {run["job"]: {key: run[key] for key in LIVE} for run in snapshot["runs"]}
    herds = [named] if named else choose_herds(client.herds(MOST_HERDS), is_all=is_all)
    jobs = [
        with_pause({**job, **NOT_LIVE, **(live.get(job["id"], {}) if is_live(job) else {})})
        for one in herds
        for job in client.jobs(one)
    ]
    paused_s = (snapshot["paused_s"] or 0.0) if snapshot["paused"] else None
    return JobList(jobs, paused_s, snapshot)


def find_named_herd(store: Store, client: Client | None, herd: str) -> str:
    """The service may use another store than this command."""
    try:
        return find_herd(store, herd)
    except UsageError:
        if client is None or next(client.jobs(herd), None) is None:
            raise
    return herd


def is_live(job: JobInfo) -> bool:
    """The snapshot is up to a second old: a job may have ended since."""
    return job["state"] in (JobState.RUNNING, JobState.HELD)


def choose_herds(herds: Iterable[HerdInfo | dict[str, Any]], *, is_all: bool) -> list[str]:
    """The oldest first."""
    return [herd["herd"] for herd in herds if is_all or herd["ended_s"] is None][::-1]


def read_stored_jobs(store: Store, herd: str | None, *, is_all: bool) -> Iterator[dict[str, Any]]:
    """While the service is not running, its jobs do not start."""
    lost = read_lost_herds(store, runtime_path())
    herds = list_herds(store, most=MOST_HERDS)
    services = {one["herd"] for one in herds if one["service"]}
    for one in [herd] if herd else choose_herds(herds, is_all=is_all):
        after = ""
        while page := list_jobs(store, herd=one, after=after, most=PAGE, lost=lost):
            for job in page:
                is_stuck = one in services and job["state"] == JobState.QUEUED
                reason = explain_no_service().as_json() if is_stuck else job["reason"]
                yield with_pause({**NOT_LIVE, **job, "reason": reason})
            after = page[-1]["id"]


def with_pause(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "paused": job["reason"].get("why") in PAUSED}
