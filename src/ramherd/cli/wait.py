"""`ramherd wait [JOB|HERD ...]`: waits until they have ended. Reads the store, with and without a
service.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from ramherd.cli.job_names import find_job_or_herd
from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import is_running
from ramherd.config.paths import runtime_path
from ramherd.core.errors import UsageError
from ramherd.core.reasons import JobState
from ramherd.core.units import format_duration, parse_duration
from ramherd.decide.job_bases import BLOCKED
from ramherd.show.event_lines import printable
from ramherd.show.job_table import render_counts
from ramherd.show.result_lines import state_of
from ramherd.show.wait_text import render_details
from ramherd.store.herds import SERVICE, is_owned, read_job_owner, read_job_state, read_lost_herds
from ramherd.store.interrupted_herds import read_stored_herd
from ramherd.store.listing import list_herds, list_jobs, read_herd, read_job
from ramherd.store.protocol import Store

EVERY_S = 0.2
PAGE = 1000
OK, FAILED, TIMED_OUT = 0, 1, 3
EPILOG = """\
examples:
  ramherd wait              all jobs of herds that have not ended
  ramherd wait 17 docs      two jobs
  ramherd wait last         the newest herd
  ramherd wait last --timeout 30m

exit codes: 0 all jobs are done, 1 a job failed, was cancelled or waits for
you, 3 timeout
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "jobs by number or name, or herds (all that have not ended)"
    parser.add_argument("what", metavar="JOB|HERD", nargs="*", help=what)
    parser.add_argument("--timeout", metavar="TIME", help="wait no longer than this: 90s, 10m, 2h")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")
    parser.set_defaults(verb=wait)


def wait(options: argparse.Namespace) -> int:
    timeout_s = None if options.timeout is None else parse_timeout(options.timeout)
    with closing(open_to_read()) as store:
        jobs = list(find_awaited(store, options.what))
        warn_without_service(store, jobs)
        is_over = wait_for_ends(store, jobs, timeout_s)
        lost = read_lost_herds(store, runtime_path())
        found = [job for id_ in jobs if (job := read_job(store, id_, lost)) is not None]
    report(found, options, "" if is_over else format_duration(timeout_s or 0.0))
    if not is_over:
        return TIMED_OUT
    return OK if all(job["state"] == JobState.DONE for job in found) else FAILED


def parse_timeout(text: str) -> float:
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"--timeout: {error}", hint=error.hint) from None


def find_awaited(store: Store, names: Sequence[str]) -> Iterator[str]:
    """Each job once."""
    named = [find_job_or_herd(store, name) for name in names]
    herds = [one.herd for one in named if one.herd is not None]
    if not names:
        herds = [herd for herd in find_open_herds(store) if not is_session(store, herd)]
    ids = [one.job for one in named if one.job is not None]
    ids += [job["id"] for herd in herds for job in read_herd_jobs(store, herd)]
    yield from dict.fromkeys(ids)


def find_open_herds(store: Store) -> list[str]:
    return [one["herd"] for one in list_herds(store, most=PAGE) if one["ended_s"] is None]


def is_session(store: Store, herd: str) -> bool:
    """A program on a terminal, of `ramherd exec` or `attach`."""
    found = read_stored_herd(store, herd)
    return found is not None and not found.is_service and found.settings is None


def read_herd_jobs(store: Store, herd: str) -> Iterator[dict[str, Any]]:
    after = ""
    while page := list_jobs(store, herd=herd, after=after, most=PAGE):
        yield from page
        after = page[-1]["id"]


def warn_without_service(store: Store, jobs: Sequence[str]) -> None:
    owners = (read_job_owner(store, job) for job in jobs)
    if not is_running() and any(one is not None and one.id == SERVICE for one in owners):
        text = "no service is running: its jobs wait for `ramherd up`"
        print(f"ramherd: {text}", file=sys.stderr, flush=True)


def wait_for_ends(store: Store, jobs: Sequence[str], timeout_s: float | None) -> bool:
    """False after the timeout. Waits for one job after another, so it reads only the first."""
    deadline_s = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    for job in jobs:
        while is_going_on(store, job):
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(min(EVERY_S, max(deadline_s - time.monotonic(), 0.0)))
    return True


def is_going_on(store: Store, job: str) -> bool:
    """Whether the job will end without the user. A pruned job has ended."""
    state = read_job_state(store, job)
    if state is None or JobState(state).is_final or not is_owned(store, job, runtime_path()):
        return False
    return state != JobState.WAITING or not is_stuck(store, job)


def is_stuck(store: Store, job: str) -> bool:
    """No job of its herd continues, and one of its jobs waits for the user."""
    found = read_job(store, job)
    herd = None if found is None else read_herd(store, found["herd"])
    if herd is None or any(herd["counts"].get(one) for one in ("queued", "running", "held")):
        return False
    waiting = list_jobs(store, herd=herd["herd"], state=JobState.WAITING)
    return any(one["reason"]["why"] in BLOCKED for one in waiting)


def report(jobs: Sequence[dict[str, Any]], options: argparse.Namespace, timeout: str) -> None:
    """Prints the jobs that are not done, each with its reason, and the counts."""
    counts = Counter(map(state_of, jobs))
    if options.json:
        ended = {"jobs": len(jobs), "timeout": bool(timeout), "states": dict(counts)}
        print(json.dumps(ended), flush=True)
        return
    for job in jobs:
        if job["state"] != JobState.DONE:
            details = render_details(job, time.time())
            words = f"{job['number']} {job['name']}{f': {details}' if details else ''}"
            print(printable(f"{state_of(job):<9} {words}"))
    print(f"{render_counts(jobs) or 'no jobs'}{f' after {timeout}' if timeout else ''}", flush=True)
