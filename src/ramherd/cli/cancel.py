"""`ramherd cancel JOB|HERD`: ends a job or a herd for good, with the grace period."""

import argparse
import json
from contextlib import closing

from ramherd.cli.job_names import find_job_or_herd
from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import Client

EPILOG = """\
examples:
  ramherd cancel fix-lint  TERM, the grace period, then KILL
  ramherd cancel 17 18     two jobs by their numbers
  ramherd cancel last      all jobs of the newest herd
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "what", metavar="JOB|HERD", nargs="+", help="a job's number or name, or a herd"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each JOB or HERD")
    parser.set_defaults(verb=cancel)


def cancel(options: argparse.Namespace) -> int:
    client = Client()
    for what in options.what:
        with closing(open_to_read()) as store:
            named = find_job_or_herd(store, what)
        if named.herd is not None:
            cancelled = client.cancel_herd(named.herd)
            text = "1 job is cancelled" if cancelled == 1 else f"{cancelled} jobs are cancelled"
            told = {"herd": named.herd, "jobs": cancelled}
            print(json.dumps(told) if options.json else text)
        elif named.job is not None:
            client.cancel(named.job)
            if options.json:
                print(json.dumps({"job": named.job, "jobs": 1}))
    return 0
