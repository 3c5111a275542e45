"""`ramherd run`: jobs from a file, prompts for an agent, or a command for each line of stdin."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ramherd.act.systemd_scope import rescope
from ramherd.config.keys import RUN_KEYS, Key
from ramherd.config.load import Config, add_flags, load_config
from ramherd.config.paths import runtime_dir
from ramherd.config.policy import make_policy
from ramherd.core.errors import UsageError
from ramherd.core.model import Job
from ramherd.core.policies import GrantPolicy, RecyclePolicy, ReusePolicy
from ramherd.jobs.reader import (
    Defaults,
    jobs_from_lines,
    jobs_from_prompts,
    read_job_file,
    read_prompts,
)
from ramherd.jobs.schema import as_directory
from ramherd.show.event_lines import LineShow
from ramherd.show.live_display import LiveShow
from ramherd.show.summary import render_summary
from ramherd.supervisor.run_herd import Rules, run_herd
from ramherd.system.ids import new_id
from ramherd.system.unix_socket import is_listening

# The second mark of the CPU gate is so far below the first.
CPU_CALM = 0.15
JOB_FILES = (".toml", ".jsonl", ".ndjson")

EPILOG = """\
examples:
  ramherd run --agent claude "fix the lint errors" "write the missing tests"
  ramherd run --agent codex prompts.txt --cwd repo       one prompt a line
  ls *.md | ramherd run -- ./agent.sh {}       one job for each line, {} replaced
  ramherd run jobs.toml                        [[job]] tables; also jobs.jsonl, or - for stdin
  ramherd run jobs.toml --budget 12GiB --json  one JSON object on stdout at the end

keys of a job: name, command (list, or a string for the shell), resume_command, cwd, env, stdin,
priority, after, label, memory, memory_limit, timeout, retries, profile; with an agent instead of
a command: agent, prompt, model, fallback_model, worktree, max_cost_usd, skip_permissions,
agent_program

settings also stand in ramherd.toml and in RAMHERD_* variables: see `ramherd config`
exit codes: 0 all done, 1 a job failed, 2 usage, 3 this machine cannot, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    what = "jobs.toml, jobs.jsonl, - for stdin; with an agent: prompts, or prompts.txt"
    parser.add_argument("jobs", nargs="*", metavar="FILE", help=what)
    parser.add_argument("--cwd", metavar="DIR", help="where jobs work that do not say")
    parser.add_argument("--dry-run", action="store_true", help="show what would be started")
    below = "also with a memory_limit below what an agent needs"
    parser.add_argument("--force", action="store_true", help=below)
    parser.add_argument("--own", action="store_true", help="here, also if a service runs")
    add_herd_options(parser)
    parser.set_defaults(verb=run)


def add_herd_options(parser: argparse.ArgumentParser, keys: Iterable[Key] = RUN_KEYS) -> None:
    add_flags(parser, keys)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")


def run(options: argparse.Namespace) -> int:
    """By the service if there is one, and nothing is asked of this herd that is the service's
    to decide.
    """
    if not is_apart(options) and is_listening(runtime_dir() / "api.sock"):
        from ramherd.cli.submit import submit  # noqa: PLC0415 - 20 ms that no other run pays

        options.wait = True
        return submit(options)
    herd, config = new_id(), settle_config(options)
    jobs = read_jobs(options, herd, make_defaults(config, options.cwd))
    if options.dry_run:
        return show_plan(jobs, make_rules(config, force=options.force))
    return herd_and_tell(herd, jobs, config, options)


def show_plan(jobs: list[Job], rules: Rules) -> int:
    from ramherd.supervisor.dry_run import plan, render_plan  # noqa: PLC0415 - seldom

    for line in render_plan(plan(jobs, rules)):
        print(line)
    return 0


def is_apart(options: argparse.Namespace) -> bool:
    """What a herd may cost is its own affair."""
    given = {name for name, value in vars(options).items() if value is not None}
    here = options.own or options.dry_run or options.force
    shared = (key.name for key in RUN_KEYS if not key.of_job and key.name != "max_cost_usd")
    return here or any(name in given for name in shared)


def settle_config(options: argparse.Namespace, **defaults: Any) -> Config:
    """All settings, and a line for each that looks like one and is none. Starting over inside
    a scope comes first: nothing is said or read twice.
    """
    config = load_config(options, defaults=defaults)
    rescope(config["pen"])
    for warning in config.warnings:
        print(f"ramherd: {warning}", file=sys.stderr)
    return config


def herd_and_tell(herd: str, jobs: list[Job], config: Config, options: argparse.Namespace) -> int:
    """The jobs' progress on the way, their summary at the end."""
    rules = make_rules(config, force=getattr(options, "force", False))
    out = sys.stderr if options.json else sys.stdout
    show = LiveShow(out) if out.isatty() else LineShow(out)
    try:
        outcome = run_herd(herd, jobs, rules, show)
    finally:
        show.close()
    if options.json:
        print(json.dumps(outcome.summary), flush=True)
    else:
        for line in render_summary(outcome.summary, outcome.missing_bytes):
            show.print(line)
        show.close()
    return outcome.exit_code


def read_jobs(options: argparse.Namespace, herd: str, defaults: Defaults) -> list[Job]:
    if options.command is None:
        return read_given(options.jobs, herd, defaults)
    if options.jobs:
        raise UsageError(f"both a file ({options.jobs[0]}) and a command after -- were given")
    if not options.command:
        raise UsageError("no command after --", hint="... | ramherd run -- CMD {}")
    if sys.stdin.isatty():
        print("ramherd: one job a line, Ctrl-D to end", file=sys.stderr)
    return jobs_from_lines(options.command, sys.stdin.buffer.read(), herd, defaults)


def read_given(given: list[str], herd: str, defaults: Defaults) -> list[Job]:
    """One file of jobs; or prompts, as they stand here and in text files."""
    if not given:
        raise UsageError("no jobs", hint="ramherd run jobs.toml, or: ... | ramherd run -- CMD {}")
    if len(given) == 1 and (given[0] == "-" or given[0].endswith(JOB_FILES)):
        stdin = sys.stdin.buffer.read() if given[0] == "-" else None
        return read_job_file(given[0], herd, defaults, stdin)
    if defaults.agent is None:
        if len(given) == 1:
            return read_job_file(given[0], herd, defaults, None)
        raise UsageError(f"{len(given)} files of jobs were given", hint="prompts need --agent")
    prompts = [prompt for word in given for prompt in prompts_of(word)]
    return jobs_from_prompts(prompts, herd, defaults)


def prompts_of(word: str) -> list[str]:
    """A misspelt file is no prompt."""
    is_name = word.endswith((".txt", *JOB_FILES)) and not any(map(str.isspace, word))
    if word.endswith(".txt") and (is_name or os.path.isfile(word)):
        return read_prompts(word)
    if is_name or os.path.isfile(word):
        raise UsageError(
            f"{word!r} among prompts is a file that holds none",
            hint="prompts are in .txt files, one a line; a file of jobs stands alone",
        )
    return [word]


def make_defaults(config: Config, cwd: str | None = None) -> Defaults:
    """For jobs that name no profile, and for each profile that they may name."""
    where = as_directory(cwd) if cwd is not None else None
    profiles = {
        name: replace(plain_defaults(config.with_profile(name)), cwd=where)
        for name in config.profiles
    }
    return replace(plain_defaults(config), cwd=where, profiles=profiles)


def plain_defaults(config: Config) -> Defaults:
    return Defaults(
        memory_bytes=config["memory"],
        memory_limit_bytes=config["memory_limit"],
        timeout_s=config["timeout"],
        retries=config["retries"],
        agent=config["agent"],
        model=config["model"],
        fallback_model=config["fallback_model"],
        skip_permissions=config["skip_permissions"],
        agent_program=config["agent_program"],
        agent_args=config["agent_args"],
        worktree=config["worktree"],
        max_cost_usd=config["max_cost_usd"],
        reuse=config["reuse"],
    )


def make_rules(config: Config, *, force: bool = False) -> Rules:
    time, size = config["time_scale"], config["size_scale"]
    # Above 1 nothing is ever: a start waits for memory only.
    cpu = config["max_cpu_pressure"] or 2.0
    grants = GrantPolicy(
        max_parallel=config["max_parallel"],
        patience_s=config["patience"],
        max_hold_s=config["max_hold"],
        cpu_pressure_marks=(cpu, max(cpu - CPU_CALM, cpu / 2)),
    )
    return Rules(
        policy=make_policy(config),
        grants=grants.scaled(time, size),
        recycling=RecyclePolicy(recycle_at_bytes=config["recycle_at"]).scaled(time),
        reuse=ReusePolicy(config["reuse_size"], config["reuse_age"], config["reuse_idle"]),
        pen=config["pen"],
        ramp=config["ramp"],
        on_alert=config["on_alert"],
        time_scale=time,
        size_scale=size,
        max_cost_usd=config["max_cost_usd"],
        force=force,
    )
