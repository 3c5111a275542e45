"""`ramherd pause [JOB ...]`: no job starts, or these jobs do not start, until `ramherd resume`."""

import argparse
import json

from ramherd.cli.job_names import find_jobs
from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd pause             running jobs go on, no other job starts
  ramherd pause 17 docs     these two do not start; other jobs do
  ramherd resume            undo it
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "queued jobs, by number or name (without one: the whole service)"
    parser.add_argument("jobs", metavar="JOB", nargs="*", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=pause)


def pause(options: argparse.Namespace) -> int:
    client = Client()
    jobs = find_jobs(options.jobs) if options.jobs else []
    for job in jobs:
        client.pause(job)
    if not jobs:
        client.pause()
    if options.json:
        print(json.dumps({"paused": True, "jobs": jobs}))
    return 0
