"""`ramherd resume [JOB ...]`: takes `ramherd pause` back."""

import argparse

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
    parser.set_defaults(verb=resume)


def resume(options: argparse.Namespace) -> int:
    client = Client()
    for job in find_jobs(options.jobs) if options.jobs else [None]:
        client.resume(job)
    return 0
