"""`ramherd run`: jobs from a file, or one for each line of standard input."""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ramherd.act.rescope import rescope
from ramherd.config import Config, add_flags, load_config
from ramherd.configkeys import RUN_KEYS, Key
from ramherd.decide.governor.recycle import RecyclePolicy
from ramherd.errors import UsageError
from ramherd.grants import GrantPolicy
from ramherd.ids import new_id
from ramherd.jobfile import Defaults, jobs_from_lines, read_job_file
from ramherd.launch import Rules, run_herd
from ramherd.model import Job, Policy
from ramherd.places import runtime_dir
from ramherd.show.lines import LineShow
from ramherd.show.live import LiveShow
from ramherd.show.summary import render_summary
from ramherd.unixsocket import is_listening

# The second mark of the CPU gate is so far below the first.
CPU_CALM = 0.15

EPILOG = """\
examples:
  ls *.md | ramherd run -- ./agent.sh {}       one job for each line, {} replaced
  ramherd run jobs.toml                        [[job]] tables; also jobs.jsonl, or - for stdin
  ramherd run jobs.toml --budget 12GiB --json  one JSON object on stdout at the end

keys of a job: name, command (list, or a string for the shell), resume_command, cwd, env, stdin,
priority, after, label, memory, memory_limit, timeout, retries, profile

settings also stand in ramherd.toml and in RAMHERD_* variables: see `ramherd config`
exit codes: 0 all done, 1 a job failed, 2 usage, 3 this machine cannot, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("jobs", nargs="?", metavar="FILE", help="jobs.toml, jobs.jsonl or -")
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
    jobs = read_jobs(options, herd, make_defaults(config))
    return herd_and_tell(herd, jobs, config, options)


def is_apart(options: argparse.Namespace) -> bool:
    given = {name for name, value in vars(options).items() if value is not None}
    return options.own or any(key.name in given for key in RUN_KEYS if not key.of_job)


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
    out = sys.stderr if options.json else sys.stdout
    show = LiveShow(out) if out.isatty() else LineShow(out)
    try:
        outcome = run_herd(herd, jobs, make_rules(config), show)
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
        if options.jobs is None:
            raise UsageError(
                "no jobs", hint="ramherd run jobs.toml, or: ... | ramherd run -- CMD {}"
            )
        stdin = sys.stdin.buffer.read() if options.jobs == "-" else None
        return read_job_file(options.jobs, herd, defaults, stdin)
    if options.jobs is not None:
        raise UsageError(f"both a file ({options.jobs}) and a command after -- were given")
    if not options.command:
        raise UsageError("no command after --", hint="... | ramherd run -- CMD {}")
    if sys.stdin.isatty():
        print("ramherd: one job a line, Ctrl-D to end", file=sys.stderr)
    return jobs_from_lines(options.command, sys.stdin.buffer.read(), herd, defaults)


def make_defaults(config: Config) -> Defaults:
    """For jobs that name no profile, and for each profile that they may name."""
    profiles = {name: plain_defaults(config.with_profile(name)) for name in config.profiles}
    return replace(plain_defaults(config), profiles=profiles)


def plain_defaults(config: Config) -> Defaults:
    return Defaults(
        memory_bytes=config["memory"],
        memory_limit_bytes=config["memory_limit"],
        timeout_s=config["timeout"],
        retries=config["retries"],
    )


def make_rules(config: Config) -> Rules:
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
        pen=config["pen"],
        ramp=config["ramp"],
        on_alert=config["on_alert"],
        time_scale=time,
        size_scale=size,
    )


def make_policy(config: Config) -> Policy:
    return Policy(
        budget_cap_bytes=config["budget"],
        budget_share=config["budget_share"],
        no_wait=config["no_wait"],
        grace_s=config["grace"],
        pids_limit=config["pids_limit"],
        log_head_bytes=config["log_head"],
        log_ring_bytes=config["log_ring"],
        log_total_bytes=config["log_total"],
    )
