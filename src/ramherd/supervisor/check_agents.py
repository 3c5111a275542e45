"""Checks jobs before they are accepted: is there a program for each agent, and may it work?"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ramherd.act.worktrees.making import isolate
from ramherd.agents import Agent, find_agent
from ramherd.agents.accounts import with_accounts
from ramherd.agents.find_program import AgentProgram
from ramherd.agents.heap import check_limit
from ramherd.agents.user_args import check_args
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief, Job


class Found(NamedTuple):
    agent: Agent
    program: AgentProgram


def prepare(
    jobs: Sequence[Job],
    folder: Path,
    *,
    env: Mapping[str, str] | None,
    max_cost_usd: float | None = None,
) -> list[Job]:
    """Adds accounts and worktrees to the jobs, and refuses a job whose agent cannot run. `env` is
    the environment that the runs inherit; None: that of the service.
    """
    found = find_programs(jobs, path=None if env is None else env.get("PATH"))
    check_herd_cost(jobs, found, max_cost_usd)
    start_gateway_for(jobs)
    return isolate(with_accounts(jobs, os.environ if env is None else env), folder)


def find_programs(
    jobs: Iterable[Job], *, path: str | None = None, force: bool = False
) -> dict[str, Found]:  # fmt: skip
    """The program of each job with an agent; a job that cannot work is refused before any job
    starts. `force`: also run an agent in less memory than it is known to need.
    """
    known: dict[tuple[str, str, str], Found] = {}
    found = {}
    names_servers = False
    for job in jobs:
        if job.brief is None:
            continue
        key = job.brief.agent, path_of(job, path), job.brief.program
        if key not in known:
            known[key] = find_program_of(job, path)
        found[job.id] = known[key]
        check_job(job, job.brief, known[key].agent, force=force)
        names_servers |= bool(job.brief.mcp)
    if names_servers:
        from ramherd.supervisor.agent_servers import check_servers  # noqa: PLC0415 - few herds

        check_servers(jobs)
    return found


def start_gateway_for(jobs: Iterable[Job]) -> None:
    """The MCP gateway, if a job needs it. Each run reports it if the gateway does not run."""
    if any(job.brief is not None and job.brief.mcp for job in jobs):
        from ramherd.supervisor.agent_servers import start_gateway  # noqa: PLC0415 - see above

        start_gateway()


def find_program_of(job: Job, path: str | None = None) -> Found:
    assert job.brief is not None
    agent = find_agent(job.brief.agent)
    return Found(agent, agent.find(path_of(job, path), job.brief.program))


def path_of(job: Job, inherited: str | None) -> str:
    own = os.environ.get("PATH", os.defpath)
    return job.env.get("PATH", own if inherited is None else inherited)


def check_job(job: Job, brief: Brief, agent: Agent, *, force: bool) -> None:
    try:
        check_args(agent, brief.args)
        if job.memory_limit_bytes is not None and not force:
            check_limit(agent, job.memory_limit_bytes)
    except UsageError as error:
        raise UsageError(f"job {job.name}: {error}", hint=error.hint) from None
    if brief.max_cost_usd is not None:
        check_cost(agent, job.name)


def check_cost(agent: Agent, name: str) -> None:
    if not agent.reports_cost:
        raise UsageError(f"job {name}: {agent.name} does not say what it costs: no max_cost_usd")


def check_herd_cost(
    jobs: Iterable[Job], found: dict[str, Found], max_cost_usd: float | None
) -> None:
    for job in jobs if max_cost_usd is not None else ():
        if job.id in found:
            check_cost(found[job.id].agent, job.name)
