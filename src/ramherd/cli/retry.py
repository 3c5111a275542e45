"""`ramherd retry JOB`: a job that failed, and those that waited for it, once more."""

import argparse

from ramherd.cli.job_names import find_job
from ramherd.client.client import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="its name or id")
    parser.set_defaults(verb=retry)


def retry(options: argparse.Namespace) -> int:
    client = Client()
    for name in options.jobs:
        client.retry(find_job(name))
    return 0
