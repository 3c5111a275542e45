"""`ramherd recycle JOB`: end its run and start it again, resumed."""

import argparse

from ramherd.cli.job_names import find_job
from ramherd.client.client import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="its name or id")
    parser.set_defaults(verb=recycle)


def recycle(options: argparse.Namespace) -> int:
    client = Client()
    for name in options.jobs:
        client.recycle(find_job(name))
    return 0
