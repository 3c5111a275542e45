"""`ramherd events`: what happened to jobs, and why, also long afterwards."""

import argparse
import json
import time
from contextlib import closing
from typing import Any

from ramherd.cli.job_names import find_herd, find_job
from ramherd.cli.store_reader import open_to_read
from ramherd.core.errors import UsageError
from ramherd.core.units import parse_duration
from ramherd.show.event_lines import render_stored
from ramherd.store.events import StoredEvent, read_events
from ramherd.store.protocol import Store

VERSION = 1
DESCRIPTION = """\
What was decided in the newest herd and why: who waited for what, was held, granted more, stopped
to make room, restarted, killed."""


EPILOG = """\
examples:
  ramherd events                    the newest herd
  ramherd events --job fix-lint     one job
  ramherd events --since 10m        the last ten minutes, in all herds
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.description = DESCRIPTION
    add = parser.add_argument
    add("--job", metavar="JOB", help="of this job only, by its number or name")
    add("--herd", metavar="ID", help="the herd (the newest)")
    add("--since", metavar="TIME", help="not older than this, in all herds: 90s, 10m, 2h")
    add("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(verb=events)


def events(options: argparse.Namespace) -> int:
    since_s = time.time() - parse_since(options.since) if options.since is not None else None
    with closing(open_to_read()) as store:
        job = find_job(store, options.job, options.herd) if options.job is not None else None
        for event in read_events(store, job=job, herd=choose_herd(store, options), since_s=since_s):
            print(json.dumps(as_json(event)) if options.json else render(event))
    return 0


def parse_since(text: str) -> float:
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"--since: {error}", hint=error.hint) from None


def choose_herd(store: Store, options: argparse.Namespace) -> str | None:
    """None means all: a job is in one herd anyway, and a time says enough."""
    if options.job is not None or (options.since is not None and options.herd is None):
        return None
    return find_herd(store, options.herd)


def as_json(event: StoredEvent) -> dict[str, Any]:
    return {"v": VERSION, **event._asdict()}


def render(event: StoredEvent) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at_s))
    return f"{at} {render_stored(event.kind, event.name or 'all runs', event.reason)}"
