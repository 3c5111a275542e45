"""`ramherd run`: jobs from a file, prompts for an agent, or a command for each line of stdin."""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Container, Iterable
from textwrap import wrap
from typing import Any

from ramherd.act.systemd_scope import enter_scope
from ramherd.cli.main import print_warnings, read_columns
from ramherd.cli.run_display import (
    RunDisplay,
    add_output_options,
    add_verbose,
    check_output_options,
)
from ramherd.cli.start_time import add_start_options, read_start_at
from ramherd.config.keys import RUN_KEYS, Key
from ramherd.config.load import Config, add_flags, load_config, make_policy
from ramherd.config.paths import runtime_dir
from ramherd.core.agent_task import ALL_SERVERS
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Event, Job, Why
from ramherd.core.policies import GrantPolicy, RecyclePolicy, ReusePolicy
from ramherd.core.record import replace
from ramherd.core.units import shown
from ramherd.core.values import parse_raw_text
from ramherd.jobs.reader import (
    JOB_FILES,
    Defaults,
    JobTables,
    make_jobs,
    read_prompts,
    read_tables,
    tables_from_lines,
    tables_from_prompts,
)
from ramherd.jobs.schema import AGENTS_ONLY, BUILT_KEYS, COMMANDS, PROFILE_KEYS, find_directory
from ramherd.show.view import Display
from ramherd.supervisor.run_herd import Outcome, Rules, run_herd
from ramherd.system.ids import new_id
from ramherd.system.own_process import end_with_parent
from ramherd.system.unix_socket import is_listening

# The distance of the CPU gate's second mark below the first.
CPU_CALM = 0.15
WAITS = "jobs of that account wait; to end now and go on later: Ctrl-C, ramherd run --resume"
# Settings of one herd, also in the service.
HERD_SETTINGS = ("max_cost_usd", "pass_env", "on_done", "notify")

EPILOG = """\
examples:
  ramherd run --agent claude "fix the lint errors" "write the missing tests"
  ramherd run --agent codex prompts.txt        one prompt for each line
  ls *.md | ramherd run -- wc -w {} > counts   one job for each line
  ramherd run jobs.toml                        [[job]] tables; or jobs.jsonl
  ramherd run jobs.toml --at 22:00             do not start before 22:00
  ramherd run jobs.toml --budget 12GiB --json  JSON on stdout at the end
  ramherd run --resume                         continue an interrupted herd

keys of a job:
%s
keys of a job with an agent:
%s

output of commands: on a terminal line by line, with the name of the job; in a
pipe, job by job as they end. Only this output goes to stdout; messages of
ramherd go to stderr. --quiet hides it; `ramherd logs` shows it later. With
--quiet, or if all jobs have an agent, messages of ramherd go to stdout.

settings: also in ramherd.toml and in RAMHERD_* variables; see `ramherd config`
exit codes: 0 all jobs are done, 1 a job failed, 2 usage, 3 this machine cannot
run them, 130 interrupted
"""


def list_keys(use: Container[str]) -> str:
    """Key names in lines for the terminal."""
    names = ", ".join(name for name, key in BUILT_KEYS.items() if key.use in use)
    return "\n".join(wrap(names, 79, initial_indent="  ", subsequent_indent="  "))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG % (list_keys(("", COMMANDS)), list_keys((AGENTS_ONLY,)))
    what = "jobs.toml, jobs.jsonl, - for stdin; with an agent: prompts, or prompts.txt"
    parser.add_argument("jobs", nargs="*", metavar="FILE", help=what)
    parser.add_argument("--cwd", metavar="DIR", help="default working directory")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started")
    below = "accept a memory_limit below what the agent needs"
    parser.add_argument("--force", action="store_true", help=below)
    parser.add_argument("--own", action="store_true", help="run here, even if a service is running")
    again = "continue an interrupted herd (the newest)"
    parser.add_argument("--resume", nargs="?", const="", metavar="HERD", help=again)
    parser.add_argument("--caller", type=int, help=argparse.SUPPRESS)
    add_start_options(parser)
    add_output_options(parser)
    add_herd_options(parser)
    parser.set_defaults(verb=run)


def add_herd_options(parser: argparse.ArgumentParser, keys: Iterable[Key] = RUN_KEYS) -> None:
    add_flags(parser, keys)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout at the end")
    add_verbose(parser)


def run(options: argparse.Namespace) -> int:
    return run_jobs(options) if options.caller is None else run_for_caller(options)


def run_for_caller(options: argparse.Namespace) -> int:
    """For `ramherd.run` in another process: we end with it, and it gets errors as JSON."""
    end_with_parent(options.caller)
    try:
        return run_jobs(options)
    except RamherdError as error:
        told = {"error": str(error), "hint": error.hint, "kind": type(error).__name__}
        print(json.dumps(told), flush=True)
        raise


def run_jobs(options: argparse.Namespace) -> int:
    """Runs the jobs in the service if one is running, unless a flag is given that the service
    decides for all herds.
    """
    check_output_options(options)
    if options.resume is not None:
        from ramherd.cli.continue_run import continue_run  # noqa: PLC0415 - seldom

        return continue_run(options)
    if not is_apart(options) and is_listening(runtime_dir() / "api.sock"):
        from ramherd.cli.submit import submit  # noqa: PLC0415 - 20 ms that other runs do not need

        options.wait = True
        return submit(options)
    if options.dry_run:
        return plan_here(options)
    herd, config = new_id(), load_settings(options)
    jobs = read_jobs(options, config, herd)
    if (start_at_s := read_start_at(options, time.time())) is not None:
        jobs = [replace(job, start_at_s=start_at_s) for job in jobs]
    return run_and_report(herd, jobs, config, options)


def read_jobs(options: argparse.Namespace, config: Config, herd: str) -> list[Job]:
    tables = read_job_tables(options, config["agent"])
    return make_jobs(tables.tables, tables.source, herd, make_defaults(config))


def plan_here(options: argparse.Namespace) -> int:
    """`--dry-run`: with the settings of this call. A service has its own for those not given."""
    from ramherd.supervisor.dry_run import plan, plan_json, render_plan  # noqa: PLC0415 - seldom

    config = load_config(options)
    print_warnings(config.warnings)
    read_start_at(options, time.time())  # a wrong time is an error here as well
    rules = make_rules(config, force=getattr(options, "force", False))
    planned = plan(read_jobs(options, config, new_id()), rules)
    print(json.dumps(plan_json(planned)) if options.json else "\n".join(render_plan(planned)))
    return 0


def is_apart(options: argparse.Namespace) -> bool:
    """Whether a flag needs its own supervisor; the cost limit and the passed variables do not."""
    given = {name for name, value in vars(options).items() if value is not None}
    here = options.own or options.dry_run or options.force
    shared = (key.name for key in RUN_KEYS if not key.of_job and key.name not in HERD_SETTINGS)
    return here or any(name in given for name in shared)


def load_settings(options: argparse.Namespace, **defaults: Any) -> Config:
    """All settings, with a warning for each variable that looks like a setting but is not one."""
    config = load_config(options, defaults=defaults)
    if why_not := enter_scope(config["pen"]):
        print(f"ramherd: no systemd scope: {why_not}", file=sys.stderr)
    print_warnings(config.warnings)
    return config


def run_and_report(herd: str, jobs: list[Job], config: Config, options: argparse.Namespace) -> int:
    """Prints the progress of the jobs, and their summary at the end."""
    settings = given_settings(options)
    commands = {job.id: job.name for job in jobs if job.brief is None}
    return report(
        lambda rules, display: run_herd(herd, jobs, rules, display, settings),
        config,
        options,
        RunDisplay(options, commands, jobs=len(jobs)),
    )


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The flags of this call that `run --resume` uses again; flags of jobs are in the jobs."""
    flags = vars(options)
    names = [key.name for key in RUN_KEYS if not key.of_job] + ["force"]
    return {name: flags[name] for name in names if flags.get(name) not in (None, False)}


def report(
    run: Callable[[Rules, Display], Outcome], config: Config, options: argparse.Namespace,
    show: RunDisplay,
) -> int:  # fmt: skip
    """Shows the progress of a herd while it runs, and its summary at the end."""
    rules = make_rules(config, force=getattr(options, "force", False))
    last: list[str] = []
    try:
        outcome = run(rules, Display(with_hint(show), show.update))
        last = [] if options.json else render_last(outcome, is_verbose=options.verbose)
    finally:
        show.close(last)
    if options.json:
        print(json.dumps(outcome.summary), flush=True)
    if config["notify"]:
        from ramherd.cli.notify import notify  # noqa: PLC0415 - seldom

        notify(outcome.summary)
    return outcome.exit_code


def render_last(outcome: Outcome, *, is_verbose: bool) -> list[str]:
    from ramherd.show.summary import render_summary  # noqa: PLC0415 - only after the run

    summary, width = outcome.summary, read_columns()
    lines = render_summary(summary, outcome.missing_bytes, width, is_verbose=is_verbose)
    if outcome.is_interrupted:
        lines.append(f"to continue: ramherd run --resume {summary['herd']}")
    return lines


def with_hint(show: RunDisplay) -> Callable[[Event, str], None]:
    """Shows events, and at the first wait for a usage limit a hint how to continue later."""
    has_hint = False

    def show_event(event: Event, name: str) -> None:
        nonlocal has_hint
        show.event(event, name)
        if event.kind == "usage_limit" and event.reason.why is Why.USAGE_LIMIT and not has_hint:
            has_hint = True
            show.print(f"{WAITS} {event.herd}")

    return show_event


def read_job_tables(options: argparse.Namespace, agent: str | None) -> JobTables:
    """The jobs as they were written, with the directory of `--cwd` for jobs that name none."""
    found = read_given(options.jobs, agent) if options.command is None else read_lines(options)
    if options.cwd is None:
        return found
    cwd = find_directory(parse_raw_text(options.cwd), None)
    tables = [{"cwd": cwd, **job} if isinstance(job, dict) else job for job in found.tables]
    return found._replace(tables=tables)


def read_lines(options: argparse.Namespace) -> JobTables:
    if options.jobs:
        raise UsageError(
            f"both {shown(options.jobs[0])} and a command after -- were given",
            hint="a file of lines for the command goes to standard input: ramherd run --help",
        )
    if not options.command:
        raise UsageError("no command after --", hint="see the examples: ramherd run --help")
    if sys.stdin.isatty():
        print("ramherd: one job a line, Ctrl-D to end", file=sys.stderr)
    return tables_from_lines(options.command, sys.stdin.buffer.read())


def read_given(given: list[str], agent: str | None) -> JobTables:
    """One job file; or prompts, from the command line and from text files."""
    if not given:
        raise UsageError("no jobs were given", hint="see the examples: ramherd run --help")
    if len(given) == 1 and (given[0] == "-" or given[0].endswith(JOB_FILES)):
        stdin = sys.stdin.buffer.read() if given[0] == "-" else None
        return read_tables(given[0], stdin)
    if agent is None:
        if len(given) == 1 and (os.path.exists(given[0]) or is_file_name(given[0])):
            return read_unmarked(given[0])
        raise explain_words(given)
    return tables_from_prompts(prompt for word in given for prompt in prompts_of(word))


def read_unmarked(path: str) -> JobTables:
    """A file whose name does not mark it as a job file. A `.txt` file more likely has prompts."""
    try:
        return read_tables(path)
    except UsageError:
        if path.endswith(".txt") and os.path.isfile(path):
            raise explain_words([path]) from None
        raise


def is_file_name(word: str) -> bool:
    return bool(os.path.splitext(word)[1]) and not any(map(str.isspace, word))


def explain_words(given: list[str]) -> UsageError:
    """The error for words that are not a job file, when no agent is chosen."""
    from ramherd.cli.mistakes import run_words  # noqa: PLC0415 - only for errors

    if ":::" in given:
        return UsageError(
            "run takes values from standard input, not after ':::'", hint=lines_for(given)
        )
    if all(word.endswith(JOB_FILES) for word in given):
        return UsageError(
            f"{len(given)} job files were given, and one is taken", hint=run_words(given)
        )
    return UsageError(
        f"{shown(given[0])} is not a job file, and a prompt needs --agent", hint=run_words(given)
    )


def lines_for(given: list[str]) -> str:
    """A GNU parallel call in our syntax: one job for each line of standard input."""
    at = given.index(":::")
    values = [word for word in given[at:] if word != ":::"]
    whole = given[:at] if any("{}" in word for word in given[:at]) else [*given[:at], "{}"]
    return f"printf '%s\\n' {shlex.join(values)} | ramherd run -- {shlex.join(whole)}"


def prompts_of(word: str) -> list[str]:
    """A word that looks like a file name is never a prompt, even if the file is missing."""
    is_name = word.endswith((".txt", *JOB_FILES)) and not any(map(str.isspace, word))
    if not is_name and not os.path.isfile(word):
        return [word]
    if word.endswith(".txt"):
        return read_prompts(word)
    if word.endswith(JOB_FILES):
        hint = f"ramherd run {shlex.quote(word)}"
        raise UsageError(f"{word!r} is a job file, not a prompt", hint=hint)
    raise UsageError(f"{word!r} is a file, not a prompt", hint="put prompts into a .txt file")


def make_defaults(config: Config) -> Defaults:
    """For jobs that name no profile, and for each profile that they may name."""
    return Defaults(
        job_values(config),
        {name: job_values(config.with_profile(name)) for name in config.profiles},
        max_cost_usd=config["max_cost_usd"],
    )


def job_values(config: Config) -> dict[str, Any]:
    """With `mcp.share`, agents get all servers of the gateway unless a setting names some."""
    values = {name: config[name] for name in PROFILE_KEYS}
    if values["mcp"] is None and config["mcp.share"]:
        values["mcp"] = (ALL_SERVERS,)
    return values


def make_rules(config: Config, *, force: bool = False) -> Rules:
    time, size = config["time_scale"], config["size_scale"]
    # Pressure is never above 1, so that starts wait only for memory.
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
        on_done=config["on_done"],
        watch_every_s=config["watch_every"],
        time_scale=time,
        size_scale=size,
        max_cost_usd=config["max_cost_usd"],
        force=force,
        pass_env=config["pass_env"],
    )
