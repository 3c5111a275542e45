"""`ramherd submit`: jobs for the service, from a file or one for each line."""

import argparse
import os
import sys

from ramherd.cli.follow import follow
from ramherd.cli.run import make_defaults, read_jobs
from ramherd.client.client import Client, is_running, table_of
from ramherd.config.keys import RUN_KEYS
from ramherd.config.load import add_flags, load_config
from ramherd.core.errors import NoService
from ramherd.system.ids import new_id

EPILOG = """\
examples:
  ramherd submit jobs.toml                     the id of its herd, which is on disk by then
  ls *.md | ramherd submit -- ./agent.sh {}    one job for each line, {} replaced
  ramherd submit --agent claude "fix the lint errors" --cwd repo
  ramherd submit jobs.toml --wait              follow it to its end

Runs have the environment that stands here, not the service's.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "jobs.toml, jobs.jsonl, - for stdin; with an agent: prompts, or prompts.txt"
    parser.add_argument("jobs", nargs="*", metavar="FILE", help=what)
    parser.add_argument("--cwd", metavar="DIR", help="where jobs work that do not say")
    parser.add_argument("--wait", action="store_true", help="follow the herd to its end")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")
    add_flags(parser, [key for key in RUN_KEYS if key.of_job or key.name == "max_cost_usd"])
    parser.set_defaults(verb=submit)


def submit(options: argparse.Namespace) -> int:
    if not is_running():
        raise NoService("no ramherd service is running", hint="ramherd up, or ramherd run")
    config = load_config(options)
    for warning in config.warnings:
        print(f"ramherd: {warning}", file=sys.stderr)
    jobs = read_jobs(options, new_id(), make_defaults(config, options.cwd))
    client = Client()
    herd = client.submit(
        [table_of(job) for job in jobs], dict(os.environ), max_cost_usd=config["max_cost_usd"]
    )
    if options.wait:
        return follow(client, herd, as_json=options.json)
    print(f'{{"herd": "{herd}", "jobs": {len(jobs)}}}' if options.json else herd)
    return 0
