"""`ramherd run`: jobs from a file, or one for each line of standard input."""

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

from ramherd.act.pens.choose import KINDS
from ramherd.act.rescope import rescope
from ramherd.errors import UsageError
from ramherd.ids import new_id
from ramherd.jobfile import Defaults, jobs_from_lines, read_job_file
from ramherd.launch import run_herd
from ramherd.model import Job, Policy
from ramherd.show.lines import LineShow
from ramherd.show.live import LiveShow
from ramherd.show.summary import render_summary
from ramherd.units import parse_duration, parse_size

EPILOG = """\
examples:
  ls *.md | ramherd run -- ./agent.sh {}       one job for each line, {} replaced
  ramherd run jobs.toml --max-parallel 8       [[job]] tables; also jobs.jsonl, or - for stdin
  ramherd run jobs.toml --budget 12GiB --json  one JSON object on stdout at the end

keys of a job: name, command (list, or a string for the shell), cwd, env, stdin, priority,
after, label, memory, memory_limit, timeout, retries

exit codes: 0 all done, 1 a job failed, 2 usage, 3 this machine cannot, 130 interrupted
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("jobs", nargs="?", metavar="FILE", help="jobs.toml, jobs.jsonl or -")
    add_herd_options(parser)
    add = parser.add_argument
    add("--memory", metavar="SIZE", help="what a job needs, if it does not say (512MiB)")
    add("--memory-limit", metavar="SIZE", help="what a job may never exceed, if it does not say")
    add("--timeout", metavar="TIME", help="how long a run may take, if its job does not say")
    add("--retries", type=int, default=0, metavar="N", help="how often a failed job is tried again")
    parser.set_defaults(verb=run)


def add_herd_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--max-parallel", type=int, metavar="N", help="runs at a time (memory decides if not given)"
    )
    add("--budget", metavar="SIZE", help="the most that all runs together may hold")
    add("--no-wait", action="store_true", help="fail at once when memory is short (exit 3)")
    add("--grace", metavar="TIME", help="between TERM and KILL (10s)")
    add("--pen", choices=("auto", *KINDS), default="auto", help="how runs are held (auto)")
    add("--json", action="store_true", help="one JSON object on stdout at the end")


def run(options: argparse.Namespace) -> int:
    herd, defaults = new_id(), make_defaults(options)
    policy = make_policy(options)
    rescope(options.pen)
    return herd_and_tell(herd, read_jobs(options, herd, defaults), policy, options)


def herd_and_tell(herd: str, jobs: list[Job], policy: Policy, options: argparse.Namespace) -> int:
    """The jobs' progress on the way, their summary at the end."""
    out = sys.stderr if options.json else sys.stdout
    show = LiveShow(out) if out.isatty() else LineShow(out)
    try:
        outcome = run_herd(herd, jobs, policy, options.pen, show)
    finally:
        show.close()
    if options.json:
        print(json.dumps(outcome.summary), flush=True)
    else:
        for line in render_summary(outcome.summary, outcome.missing_bytes):
            show.print(line)
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


def make_defaults(options: argparse.Namespace) -> Defaults:
    if options.retries < 0:
        raise UsageError(f"--retries {options.retries} is below zero")
    return Defaults(
        memory_bytes=flag(options, "memory", parse_size),
        memory_limit_bytes=flag(options, "memory_limit", parse_size),
        timeout_s=flag(options, "timeout", parse_duration),
        retries=options.retries,
    )


def make_policy(options: argparse.Namespace) -> Policy:
    if options.max_parallel is not None and options.max_parallel < 1:
        raise UsageError(f"--max-parallel {options.max_parallel} is below 1")
    policy = Policy(
        budget_cap_bytes=flag(options, "budget", parse_size),
        max_parallel=options.max_parallel,
        no_wait=options.no_wait,
    )
    grace = flag(options, "grace", parse_duration)
    return policy if grace is None else replace(policy, grace_s=grace)


def flag(options: argparse.Namespace, name: str, parse: Any) -> Any:
    text = getattr(options, name)
    if text is None:
        return None
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"--{name.replace('_', '-')}: {error}", hint=error.hint) from None
