"""`ramherd submit`: jobs for the service, from a file or one for each line."""

import argparse
import time
from typing import Any

from ramherd.act.environments import choose_passed
from ramherd.cli.follow import follow
from ramherd.cli.main import print_warnings
from ramherd.cli.run import HERD_SETTINGS, plan_here, read_job_tables
from ramherd.cli.run_display import add_verbose
from ramherd.cli.start_time import add_start_options, read_start_at
from ramherd.client.client import Client, is_running
from ramherd.config.keys import RUN_KEYS
from ramherd.config.load import Config, add_flags, load_config
from ramherd.core.errors import NoService, UsageError
from ramherd.jobs.schema import PROFILE_KEYS
from ramherd.system.user_files import read_cwd

EPILOG = """\
examples:
  ramherd submit jobs.toml                     print the id of the new herd
  ls *.md | ramherd submit -- ./agent.sh {}    one job for each line
  ramherd submit --agent claude "fix the lint errors" --cwd repo
  ramherd submit jobs.toml --at 22:00          do not start before 22:00
  ramherd submit jobs.toml --wait              follow the herd to its end
  ramherd submit jobs.toml --dry-run           print what would be started

Runs get the environment of this command, not that of the service.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "jobs.toml, jobs.jsonl, - for stdin; with an agent: prompts, or prompts.txt"
    parser.add_argument("jobs", nargs="*", metavar="FILE", help=what)
    parser.add_argument("--cwd", metavar="DIR", help="default working directory")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started")
    add_start_options(parser)
    parser.add_argument("--wait", action="store_true", help="follow the herd to its end")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")
    add_verbose(parser)
    add_flags(parser, [key for key in RUN_KEYS if key.of_job or key.name in HERD_SETTINGS])
    # It limits all herds of the service together, so it gets its own error.
    parser.add_argument("-j", "--max-parallel", metavar="N", help=argparse.SUPPRESS)
    parser.set_defaults(verb=submit)


def submit(options: argparse.Namespace) -> int:
    if getattr(options, "dry_run", False):
        return plan_here(options)
    if options.max_parallel is not None:
        raise UsageError(
            "--max-parallel is one limit for all herds of the service",
            hint=f"ramherd up -j {options.max_parallel}, or ramherd run -j {options.max_parallel}",
        )
    if not is_running():
        raise NoService("no ramherd service is running", hint="ramherd up, or ramherd run")
    config = load_config(options)
    print_warnings(config.warnings)
    jobs = read_job_tables(options, config["agent"])
    profiles = {name: given_values(config.with_profile(name)) for name in config.profiles}
    client = Client()
    herd = client.submit(
        jobs.tables, choose_passed(config["pass_env"]), cwd=read_cwd(),
        defaults=given_values(config),
        profiles=profiles, source=jobs.source, max_cost_usd=config["max_cost_usd"],
        on_done=config["on_done"],
        start_at_s=read_start_at(options, time.time()),
    )  # fmt: skip
    if options.wait:
        return follow(client, herd, options, is_notified=config["notify"])
    print(f'{{"herd": "{herd}", "jobs": {len(jobs.tables)}}}' if options.json else herd)
    return 0


def given_values(config: Config) -> dict[str, Any]:
    """The settings that were given here. The service has its own for the others, except for the
    right to use tools without asking, which must be given here.
    """
    values = {name: config.given(name) for name in PROFILE_KEYS}
    values["skip_permissions"] = config["skip_permissions"]
    return {name: value for name, value in values.items() if value is not None}
