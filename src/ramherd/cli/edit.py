"""`ramherd edit JOB`: changes the priority or the memory of a queued job."""

import argparse
import json

from ramherd.cli.flag_values import parse_flag
from ramherd.cli.job_names import find_jobs
from ramherd.client.client import Client
from ramherd.core.errors import UsageError
from ramherd.core.values import SIZE, WHOLE

EPILOG = """\
examples:
  ramherd edit 17 --priority 5        jobs with a higher number start first
  ramherd edit docs --memory 900MiB   memory reserved for a run from its start
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "queued jobs of the service, by number or name"
    parser.add_argument("jobs", metavar="JOB", nargs="+", help=what)
    parser.add_argument("--priority", metavar="N", help="jobs with a higher number start first")
    parser.add_argument("--memory", metavar="SIZE", help="memory reserved for a run from its start")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=edit)


def edit(options: argparse.Namespace) -> int:
    if options.priority is None and options.memory is None:
        raise UsageError(
            "nothing to change", hint="ramherd edit JOB --priority N, or --memory SIZE"
        )
    priority = parse_flag("--priority", options.priority, WHOLE.parse_setting)
    memory = parse_flag("--memory", options.memory, SIZE.parse_setting)
    client = Client()
    jobs = find_jobs(options.jobs)
    for job in jobs:
        client.edit(job, priority=priority, memory=memory)
    if options.json:
        print(json.dumps({"jobs": jobs, "priority": priority, "memory_bytes": memory}))
    return 0
