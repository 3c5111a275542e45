"""`ramherd results`: the result of each job of a herd, while it runs or afterwards."""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ramherd.cli.job_names import find_herd, find_job
from ramherd.cli.main import read_columns
from ramherd.cli.store_reader import open_to_read
from ramherd.client.herd_summary import summarize
from ramherd.config.paths import runtime_path
from ramherd.show.result_lines import state_of
from ramherd.show.summary import render_herd
from ramherd.store.herds import read_lost_herds, read_newest_batch
from ramherd.store.interrupted_herds import has_interrupted_jobs
from ramherd.store.listing import Lost, list_jobs, read_herd
from ramherd.store.protocol import Store

PAGE = 250

EPILOG = """\
examples:
  ramherd results                   the newest herd: answers, changes and costs
  ramherd results --json            the same object as ramherd run --json
  ramherd show JOB                  everything about one job
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("herd", nargs="?", metavar="HERD", help="its id (the newest)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=results)


def results(options: argparse.Namespace) -> int:
    with closing(open_to_read()) as store:
        newest = read_newest_batch(store)
        herd = find_herd(store, newest if options.herd is None else options.herd)
        summary = read_summary(store, herd)
        if herd != newest and not options.json:
            mark_ambiguous(store, summary)
        goes_on = can_go_on(store, summary)
    if options.json:
        print(json.dumps(summary))
        return 0
    for line in render_herd(summary, read_columns(), every=True):
        print(line)
    if goes_on:
        print(f"to continue: ramherd run --resume {herd}")
    return 0


def mark_ambiguous(store: Store, summary: dict[str, Any]) -> None:
    """Marks the jobs of an older herd whose names newer jobs have too."""
    jobs = read_jobs(store, summary["herd"], {})
    for result, job in zip(summary["results"], jobs, strict=False):
        result["by_number"] = find_job(store, job["name"]) != job["id"]


def can_go_on(store: Store, summary: dict[str, Any]) -> bool:
    """The herd was interrupted, or its ramherd was killed."""
    if any(state_of(result) == "lost" for result in summary["results"]):
        return True
    return bool(summary["cancelled"]) and has_interrupted_jobs(store, summary["herd"])


def read_summary(store: Store, herd: str) -> dict[str, Any]:
    lost = read_lost_herds(store, runtime_path())
    found = read_herd(store, herd, lost)
    assert found is not None
    return summarize(found, read_jobs(store, herd, lost))


def read_jobs(store: Store, herd: str, lost: Lost) -> Iterator[dict[str, Any]]:
    after = ""
    while page := list_jobs(store, herd=herd, after=after, most=PAGE, runs=True, lost=lost):
        yield from page
        after = page[-1]["id"]
