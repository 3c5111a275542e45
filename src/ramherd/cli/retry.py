"""`ramherd retry JOB`: a job that failed, and those that waited for it, once more."""

import argparse
from contextlib import closing

from ramherd.act.environments import choose_passed
from ramherd.cli.job_names import find_job
from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import Client
from ramherd.config.keys import BY_NAME
from ramherd.config.load import add_flag, load_config

EPILOG = """\
When a herd has ended, its environment is removed: a job of it that is retried gets the environment
of this command. A variable that the job file gave has to be in it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="its name or id")
    add_flag(parser, BY_NAME["pass_env"])
    parser.set_defaults(verb=retry)


def retry(options: argparse.Namespace) -> int:
    client, env = Client(), choose_passed(load_config(options)["pass_env"])
    for name in options.jobs:
        with closing(open_to_read()) as store:
            job = find_job(store, name)
        client.retry(job, env)
    return 0
