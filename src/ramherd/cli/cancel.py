"""`ramherd cancel JOB|HERD`: end it, with the grace, and for good."""

import argparse

from ramherd.cli.job_names import find_herd, find_job
from ramherd.client.client import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="JOB|HERD", nargs="+", help="a job's name or id, or a herd")
    parser.set_defaults(verb=cancel)


def cancel(options: argparse.Namespace) -> int:
    client = Client()
    for what in options.what:
        if (herd := find_herd(what)) is not None:
            print(f"{client.cancel_herd(herd)} jobs are cancelled")
        else:
            client.cancel(find_job(what))
    return 0
