"""`ramherd resume [JOB ...]`: undoes `ramherd pause`."""

import argparse
import json

from ramherd.cli.job_names import find_jobs
from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd resume            undo ramherd pause
  ramherd resume 17         undo ramherd pause 17
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "paused jobs, by number or name (without one: the whole service)"
    parser.add_argument("jobs", metavar="JOB", nargs="*", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=resume)


def resume(options: argparse.Namespace) -> int:
    client = Client()
    jobs = find_jobs(options.jobs) if options.jobs else []
    for job in jobs:
        client.resume(job)
    if not jobs:
        client.resume()
    if options.json:
        print(json.dumps({"paused": False, "jobs": jobs}))
    return 0
