"""What a herd would start, without starting it: `ramherd run --dry-run`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ramherd.core.model import Job
from ramherd.decide.governor.priors import prior_of
from ramherd.show.dry_run import Planned
from ramherd.supervisor.run_herd import Rules, prepare_agents, with_worktrees

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns


def plan(jobs: Sequence[Job], rules: Rules) -> list[Planned]:
    jobs = with_worktrees(jobs)
    agent_runs = prepare_agents(jobs, rules)
    return [plan_job(job, agent_runs) for job in jobs]


def plan_job(job: Job, agent_runs: "AgentRuns | None") -> Planned:
    """With the grant that a job of its kind gets before anything is known of it."""
    if agent_runs is None or job.brief is None:
        return Planned(job.name, job.cwd, job.argv, job.env, job.stdin)
    grant = max(prior_of(job.brief.agent).base_bytes, job.memory_bytes)
    launch = agent_runs.launch_first(job, grant, job.brief.model)
    return Planned(job.name, job.cwd, launch.argv, {**launch.env, **job.env}, launch.stdin)
