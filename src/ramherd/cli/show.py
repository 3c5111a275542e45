"""`ramherd show JOB`: the page of a job, while it runs or afterwards."""

import argparse
import json
import os
import shlex
import time
from contextlib import closing
from typing import Any

from ramherd.cli.job_names import add_herd_option, find_job
from ramherd.cli.main import read_columns
from ramherd.cli.store_reader import open_to_read
from ramherd.client.herd_summary import log_path, result_of
from ramherd.config.paths import runtime_path
from ramherd.core.errors import UsageError
from ramherd.show.job_page import JobLogs, render_job
from ramherd.show.result_lines import render_address
from ramherd.store.herds import read_lost_herds
from ramherd.store.listing import read_job

EPILOG = """\
examples:
  ramherd show fix-lint             state, prompt, answer, changes and runs
  ramherd show fix-lint --full      with the whole prompt and answer
  ramherd show fix-lint --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("job", metavar="JOB", help="its number or name")
    add_herd_option(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--full", action="store_true", help="the whole prompt and answer")
    how.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=show)


def show(options: argparse.Namespace) -> int:
    job = read_named(options.job, options.herd)
    if options.json:
        print(json.dumps(job))
        return 0
    if not is_newest(job):
        job["by_number"] = True
    job["resume"] = choose_resume(job)
    for line in render_job(job, read_logs(job), read_columns(), full=options.full):
        print(line)
    return 0


def choose_resume(job: dict[str, Any]) -> str | None:
    """The command that continues the session; `attach`, if its worktree is gone."""
    resume: str | None = job["resume"]
    where = shlex.split(resume)[1] if resume and resume.startswith("cd ") else ""
    if not where or os.path.isdir(where):
        return resume
    address = render_address({**job, "job": job["name"]})
    return f"ramherd attach {address}" if os.path.isdir(job["cwd"]) else None


def is_newest(job: dict[str, Any]) -> bool:
    """Whether commands take the name for this job: a newer herd may have a job of the same name."""
    with closing(open_to_read()) as store:
        return find_job(store, str(job["name"])) == str(job["id"])


def read_named(name: str, herd: str | None) -> dict[str, Any]:
    """The job as in the API, with the keys of its result that the job does not have."""
    with closing(open_to_read()) as store:
        found = read_job(store, find_job(store, name, herd), read_lost_herds(store, runtime_path()))
    if found is None:  # removed since it was found
        raise UsageError(f"no job {name!r}", hint="ramherd jobs --all")
    result = result_of(found, time.time())
    return {**found, **{key: result[key] for key in ("end", "exit_code", "log", "wall_s")}}


def read_logs(job: dict[str, Any]) -> JobLogs:
    """The place of the last run's output, and whether it still exists."""
    if not job["runs"]:
        return JobLogs()
    out = log_path(job["runs"][-1]["run"])
    return JobLogs(str(out), is_there=out.exists())
