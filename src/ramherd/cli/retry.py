"""`ramherd retry JOB`: runs a failed job, and the jobs that waited for it, again. In the service if
one is running, otherwise here, with the flags of its `ramherd run`.
"""

import argparse
import json
import shlex
from contextlib import closing
from dataclasses import replace

from ramherd.act.environments import choose_passed
from ramherd.act.recovery import recover
from ramherd.agents.allow_rules import choose_rules
from ramherd.cli.continue_run import restore_settings
from ramherd.cli.job_names import find_job
from ramherd.cli.job_worktree import check_unlocked
from ramherd.cli.run import load_settings, report
from ramherd.cli.run_display import RunDisplay, add_verbose
from ramherd.cli.store_reader import open_to_read
from ramherd.config.keys import BY_NAME
from ramherd.config.load import add_flag, load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import UsageError
from ramherd.core.model import JobState
from ramherd.show.view import Display
from ramherd.store.connect import open_store
from ramherd.store.herds import read_stored_job
from ramherd.store.interrupted_herds import StoredHerd, check_free
from ramherd.store.listing import read_job
from ramherd.store.protocol import Store
from ramherd.store.service_requests import explain_no_retry, queue_again, record_retry
from ramherd.supervisor.lost_runs import count_lost_runs
from ramherd.supervisor.resume_herd import resume_here
from ramherd.supervisor.run_herd import FAILED, OK, Outcome, Rules
from ramherd.system.unix_socket import is_listening

EPILOG = """\
examples:
  ramherd retry fix-lint
  ramherd retry fix-lint --allow 'Bash(npm test)'

With --allow the agent continues where it was, in the same session and
worktree, even if the job is done: `ramherd show JOB` lists the tools that it
was denied. For codex a rule is one of its sandboxes.

Without a service the jobs run here, and this command ends with them.

When a herd has ended, its environment is removed: a retried job gets the
environment of this command, which must have the variables of the job file.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("jobs", metavar="JOB", nargs="+", help="its number or name")
    rule = "continue the session with this tool allowed; may be given several times"
    parser.add_argument("--allow", metavar="RULE", action="append", default=[], help=rule)
    add_flag(parser, BY_NAME["pass_env"])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")
    add_verbose(parser)
    parser.set_defaults(verb=retry)


def retry(options: argparse.Namespace) -> int:
    with closing(open_to_read()) as store:
        jobs = [find_job(store, name) for name in options.jobs]
    for job, name in zip(jobs, options.jobs, strict=True):
        check_unlocked(job, name)
    if not is_listening(runtime_dir() / "api.sock"):
        return retry_here(options, jobs)
    from ramherd.client.client import Client  # noqa: PLC0415 - 4 MB

    client, env = Client(), choose_passed(load_config(options)["pass_env"])
    again = [one for job in jobs for one in client.retry(job, env, allow=options.allow)]
    if options.json:
        print(json.dumps({"jobs": again}))
    return 0


def retry_here(options: argparse.Namespace, jobs: list[str]) -> int:
    with closing(open_store(state_dir())) as store:
        recover(store, runtime_dir(), state_dir() / "runs")
        rules = {job: find_rules(store, job, options.allow) for job in jobs}
        herd = find_herd_of(store, jobs, is_allowing=bool(options.allow))
        count_lost_runs(store, state_dir(), herd.id)
    restore_settings(options, herd)
    config = load_settings(options)
    allowing = [word for rule in options.allow for word in ("--allow", rule)]
    command = shlex.join(["ramherd", "retry", *options.jobs, *allowing])

    def queue_jobs(store: Store) -> list[str]:
        again = [one for job in jobs for one in queue_again(store, job, rules[job])]
        for job in jobs:
            record_retry(store, herd.id, job, rules[job])
        return again

    def run(rules: Rules, display: Display) -> Outcome:
        return with_code_of(jobs, resume_here(herd.id, queue_jobs, command, rules, display))

    return report(run, config, options, RunDisplay(options, {}, jobs=len(jobs)))


def find_rules(store: Store, job: str, allow: list[str]) -> tuple[str, ...]:
    """The rules for all tools that the job may use from now on."""
    stored = read_stored_job(store, job)
    if not allow or stored is None:
        return ()
    session = stored.said.get("session")
    return choose_rules(stored.job.name, stored.job.brief, session, allow)


def find_herd_of(store: Store, jobs: list[str], *, is_allowing: bool) -> StoredHerd:
    """The herd of jobs that can be retried, if no process works on it."""
    found = [job for job in (read_job(store, id_) for id_ in jobs) if job is not None]
    herds = {job["herd"] for job in found}
    if len(herds) > 1:
        raise UsageError(
            f"these jobs are of {len(herds)} herds: without a service one herd is retried at a "
            "time",
            hint="ramherd up, or ramherd retry for each herd",
        )
    herd = check_free(store, herds.pop(), runtime_dir())
    for job in found:
        if job["state"] == JobState.DONE and not is_allowing:
            raise explain_no_retry(job["name"], job["state"], job["denied"])
    return herd


def with_code_of(jobs: list[str], outcome: Outcome) -> Outcome:
    """The exit code is that of the retried jobs, not of others in their herd."""
    with closing(open_to_read()) as store:
        states = [job["state"] for id_ in jobs if (job := read_job(store, id_)) is not None]
    if outcome.exit_code == FAILED and all(state == JobState.DONE for state in states):
        return replace(outcome, exit_code=OK)
    return outcome
