"""`ramherd cancel JOB|HERD`: end it, with the grace, and for good."""

import argparse
from contextlib import closing

from ramherd.cli.job_names import find_job, is_herd
from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd cancel fix-lint                     TERM, the grace period, then KILL
  ramherd cancel 01J9ZK3V5T8E2W7Q4R6Y1M0N8P   all jobs of this herd
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("what", metavar="JOB|HERD", nargs="+", help="a job's name or id, or a herd")
    parser.set_defaults(verb=cancel)


def cancel(options: argparse.Namespace) -> int:
    client = Client()
    for what in options.what:
        with closing(open_to_read()) as store:
            job = None if is_herd(store, what) else find_job(store, what)
        if job is None:
            cancelled = client.cancel_herd(what)
            print("1 job is cancelled" if cancelled == 1 else f"{cancelled} jobs are cancelled")
        else:
            client.cancel(job)
    return 0
