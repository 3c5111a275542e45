"""`ramherd plan`: how many agents a machine holds, at which risk, and what to do."""

import argparse
import json
import os
import sys
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramherd.cli.main import print_warnings, read_columns
from ramherd.cli.store_reader import open_to_read
from ramherd.config.keys import BY_NAME
from ramherd.config.load import Config, add_flags, load_config, make_policy
from ramherd.core.errors import RamherdError, StoreError, UsageError
from ramherd.core.model import Job
from ramherd.core.units import count, format_size
from ramherd.core.values import parse_agent
from ramherd.decide.budget import budget_bytes
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.plan.agent_groups import AgentGroup
from ramherd.plan.make_plan import Bound, Plan, make_plan
from ramherd.plan.past_runs import find_record, job_groups, read_cost_bound, read_limit_bound
from ramherd.plan.plan_text import plan_as_json, render_plan
from ramherd.plan.request import (
    MOST_AGENTS,
    MOST_SERVERS,
    PlanHost,
    Question,
    check_agent_size,
    check_number,
    make_host,
    parse_hosts,
    parse_leak,
    parse_option,
)
from ramherd.show.colors import is_colored
from ramherd.show.tty import is_drawable
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_meminfo_fields

if TYPE_CHECKING:
    from ramherd.jobs.reader import JobTables

MOST_PAGES = 10_000
MOST_CORES = 100_000
MOST_TRIED = 50
# Reads, and changes nothing: five real agents cost a few cents.
TRY_PROMPT = "Read the files of this directory and say in one paragraph what they are for."
TRY_HINT = "ramherd plan --try 5"

DESCRIPTION = """\
How many agents fit, at which risk, and what to do. Without --ram and --hosts:
on this machine, beside the programs that run now. Sizes come from earlier runs
here where there are some, otherwise from shipped priors."""

EPILOG = """\
examples:
  ramherd plan                                  this machine
  ramherd plan --agents 50 --ram 16GiB --agent claude --mcp 5
  ramherd plan --agents 50 --hosts 4x16GiB --html plan.html
  ramherd plan --agents 20 --ram 8GiB --leak 2GiB/h --explain
  ramherd plan jobs.toml                        this herd, here
  ramherd plan jobs.toml --try 5                run five of its jobs first
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    add = parser.add_argument
    add("jobs", nargs="?", metavar="FILE", help="jobs.toml or jobs.jsonl: plan these jobs")
    add("--agents", type=int, metavar="N", help="how many (as many as fit)")
    add("--ram", metavar="SIZE", help="of another machine (this one)")
    add("--hosts", metavar="NxSIZE", help="several machines, as in 4x16GiB or 2x16GiB,64GiB")
    add("--reserve", metavar="SIZE", help="for the system (2GiB, an eighth of the RAM at least)")
    add("--cores", type=int, metavar="N", help="of each machine (of this one: its own)")
    add("--memory", metavar="SIZE", help="mean memory of one agent (history, or priors)")
    # A number here, names in the settings: another name, so that neither is read as the other.
    servers = "MCP servers of each agent (0)"
    add("--mcp", type=int, default=0, dest="mcp_number", metavar="N", help=servers)
    add("--share", action="store_true", help="one copy of each MCP server for all agents")
    add("--pages", type=int, default=0, metavar="N", help="browser pages open at a time (0)")
    add("--leak", metavar="RATE", help="growth of each agent, as in 2GiB/h")
    add("--try", type=int, dest="try_first", metavar="N",
        help="first run N jobs of FILE, or a small prompt, and learn from them")  # fmt: skip
    add("--explain", action="store_true", help="the arithmetic behind the answer, line by line")
    add("--html", metavar="FILE", help="write one page with the same charts")
    add("--json", action="store_true", help="one JSON object on stdout")
    add_flags(parser, [BY_NAME[name] for name in ("agent", "budget", "max_parallel")])
    parser.set_defaults(verb=plan)


def plan(options: argparse.Namespace) -> int:
    config = load_config(options)
    print_warnings(config.warnings)
    html = check_html(options.html)
    jobs = read_plan_jobs(options, config)
    question = read_question(options, config, len(jobs) if jobs else options.agents)
    if options.try_first is not None:
        run_some(options, question.agent)
    made = plan_with_history(question, jobs)
    if html is not None:
        write_page(html, made)
    print_plan(made, options)
    return 0


def check_html(name: str | None) -> Path | None:
    """Checked before the simulations, not after them."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"--html: {name} is not a page", hint="end its name with .html")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--html: {path.parent} is not a directory")
    return path


def write_page(path: Path, made: Plan) -> None:
    from ramherd.plan.page import render_page  # noqa: PLC0415 - only for a page

    try:
        path.write_text(render_page(made), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def read_plan_jobs(options: argparse.Namespace, config: Config) -> list[Job]:
    if options.jobs is None:
        return []
    if options.agents is not None:
        raise UsageError(
            f"{options.jobs} has the jobs, and --agents {options.agents} is another number",
            hint=f"ramherd plan {options.jobs}",
        )
    from ramherd.cli.run import make_defaults  # noqa: PLC0415 - only for job files
    from ramherd.jobs.reader import make_jobs  # noqa: PLC0415

    tables = read_plan_tables(options.jobs)
    return make_jobs(tables.tables, tables.source, "plan", make_defaults(config))


def read_plan_tables(path: str) -> "JobTables":
    from ramherd.jobs.reader import JOB_FILES, read_tables  # noqa: PLC0415 - only for job files

    if not path.endswith(JOB_FILES):
        raise UsageError(
            f"{path!r} is not a job file", hint="ramherd plan jobs.toml, or --agents 50"
        )
    return read_tables(path)


def read_question(options: argparse.Namespace, config: Config, agents: int | None) -> Question:
    check_number("agents", agents, 1, MOST_AGENTS, 50)
    check_number("mcp", options.mcp_number, 0, MOST_SERVERS, 5)
    check_number("pages", options.pages, 0, MOST_PAGES, 2)
    check_number("cores", options.cores, 1, MOST_CORES, 8)
    check_number("try", options.try_first, 1, MOST_TRIED, 5)
    if options.share and not options.mcp_number:
        raise UsageError("--share needs --mcp: nothing to share", hint="--mcp 5 --share")
    hosts = read_hosts(options, config)
    memory = parse_option("memory", options.memory) if options.memory is not None else None
    check_agent_size(memory, hosts[0])
    return Question(
        agent=parse_agent(config["agent"] or "claude"), agents=agents, hosts=hosts,
        mcp=options.mcp_number, shares_mcp=options.share, pages=options.pages,
        leak_bytes_per_s=parse_leak(options.leak), memory_bytes=memory,
        max_parallel=config["max_parallel"],
    )  # fmt: skip


def read_hosts(options: argparse.Namespace, config: Config) -> tuple[PlanHost, ...]:
    if options.ram is not None and options.hosts is not None:
        raise UsageError("--ram and --hosts are two answers to one question", hint="--hosts alone")
    reserve = parse_option("reserve", options.reserve) if options.reserve is not None else None
    if options.hosts is not None:
        return parse_hosts(options.hosts, reserve, options.cores)
    if options.ram is not None:
        return (make_host(parse_option("ram", options.ram), reserve, options.cores),)
    return (read_here(config, options.cores),)


def read_here(config: Config, cores: int | None) -> PlanHost:
    """This machine, beside what runs on it now."""
    machine = read_machine(read_trees())
    policy = make_policy(config)
    budget = budget_bytes(machine, 0, policy)
    if budget <= 0:
        raise UsageError(
            f"no memory is left for agents: {format_size(machine.available_bytes)} of "
            f"{format_size(machine.total_bytes)} are available",
            hint="see what takes it: ramherd ps; or plan another machine: --ram 16GiB",
        )
    ram = machine.most_bytes
    reserve = max(int(policy.budget_share * ram) - budget, 0)
    number = cores or len(os.sched_getaffinity(0))
    return PlanHost(ram, reserve, budget, is_here=True, cores=number)


def plan_with_history(question: Question, jobs: list[Job]) -> Plan:
    """Without a store there is no history, and the shipped priors are used."""
    try:
        store = open_to_read()
    except StoreError:
        return make_made(question, plain_groups(question, jobs), [])
    with closing(store):
        groups = job_groups(jobs, store) if jobs else [
            plain_groups(question, [])[0]._replace(record=find_record(store, question.agent))
        ]  # fmt: skip
        bounds = [read_limit_bound(store, question.agent), read_cost_bound(store, question)]
    return make_made(question, groups, bounds)


def plain_groups(question: Question, jobs: list[Job]) -> list[AgentGroup]:
    if jobs:
        return job_groups(jobs, None)
    record = find_record(None, question.agent)
    return [AgentGroup(question.agent, question.agents or 1, record, question.memory_bytes)]


def make_made(question: Question, groups: list[AgentGroup], bounds: list[Bound]) -> Plan:
    swap = read_meminfo_fields().get("SwapTotal", 0) if question.hosts[0].is_here else 0
    return make_plan(question, groups, bounds, swap_bytes=swap)


def print_plan(made: Plan, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(plan_as_json(made, is_explained=options.explain)))
        return
    width = read_columns() - 1
    lines = render_plan(made, width, is_explained=options.explain)
    if is_drawable(sys.stdout):
        from ramherd.plan.memory_chart import render_chart  # noqa: PLC0415 - 17 MB

        chart = render_chart(made, width, is_colored=is_colored(sys.stdout))
        at = lines.index("")
        lines[at:at] = ["", *chart.splitlines()]
    print("\n".join(lines))


def run_some(options: argparse.Namespace, agent: str) -> None:
    """`--try N`: runs real ones as `ramherd run` does, and the store learns from them."""
    from ramherd.cli.parser import make_parser  # noqa: PLC0415 - seldom
    from ramherd.cli.run import load_settings, make_defaults, run_and_report  # noqa: PLC0415
    from ramherd.jobs.reader import make_jobs  # noqa: PLC0415

    if options.ram is not None or options.hosts is not None:
        what = "--ram" if options.ram is not None else "--hosts"
        raise UsageError(f"--try runs agents on this machine, {what} is another", hint=TRY_HINT)
    tables, source = trial_tables(options, agent)
    words = make_parser("run").parse_args(["--own", "--no-worktree"] if not options.jobs else [])
    words.json, herd, config = False, new_id(), load_settings(words)
    jobs = make_jobs(tables, source, herd, make_defaults(config))
    # With --json, standard output has one object.
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        if run_and_report(herd, jobs, config, words):
            message = f"not all of {count(len(jobs), 'trial run')} were done"
            raise RamherdError(message, hint="see why: ramherd results")
        print()


def trial_tables(options: argparse.Namespace, agent: str) -> tuple[list[Any], str]:
    """The first jobs of the file that wait for no other; without a file, a small prompt."""
    number = options.try_first
    if options.jobs is None:
        one = {"agent": agent, "prompt": TRY_PROMPT, "worktree": False}
        return [{**one, "name": f"try-{at + 1}"} for at in range(number)], "--try"
    tables = read_plan_tables(options.jobs)
    free = [table for table in tables.tables if not table.get("after")]
    return free[:number], tables.source
