"""`ramherd recycle JOB`: ends the run of a job and resumes it in a new one."""

import argparse
import json

from ramherd.cli.job_names import find_jobs
from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd recycle fix-lint  continue its session in new processes
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="its number or name")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=recycle)


def recycle(options: argparse.Namespace) -> int:
    client = Client()
    jobs = find_jobs(options.jobs)
    for job in jobs:
        client.recycle(job)
    if options.json:
        print(json.dumps({"jobs": jobs}))
    return 0
