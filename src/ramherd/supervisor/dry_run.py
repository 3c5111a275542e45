"""The commands that a herd would start, as lines for a shell, without starting them: `--dry-run` of
`ramherd run` and `ramherd submit`.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ramherd.core.model import Job, Tree
from ramherd.decide.governor.classes import prior_of
from ramherd.supervisor.run_herd import Rules, prepare_agents, with_worktrees

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns

SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH")
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Planned:
    name: str
    cwd: str
    argv: tuple[str, ...]
    # In addition to the environment of ramherd itself.
    env: Mapping[str, str]
    stdin: str | None
    # The commands that make the worktree `cwd`, if the job has its own worktree.
    setup: tuple[tuple[str, ...], ...] = ()


def plan(jobs: Sequence[Job], rules: Rules) -> list[Planned]:
    jobs = with_worktrees(jobs)
    agent_runs = prepare_agents(jobs, rules)
    trees = {job.id: tree for job in jobs if (tree := job.tree) is not None}
    return [plan_in_tree(job, agent_runs, trees) for job in jobs]


def plan_in_tree(job: Job, agent_runs: "AgentRuns | None", trees: Mapping[str, Tree]) -> Planned:
    """A worktree is made with plain git commands, instead of the script of a run."""
    tree = trees.get(job.id)
    if tree is None or job.brief is None:
        return plan_job(job, agent_runs)
    starts = [trees[parent].branch for parent in tree.parents] or [tree.commit]
    add = ("git", "-C", tree.repository, "worktree", "add", "-B", tree.branch, tree.path)
    merges = [("git", "-C", tree.path, "merge", branch) for branch in starts[1:]]
    planned = plan_job(replace(job, brief=replace(job.brief, tree=None)), agent_runs)
    cwd = os.path.normpath(os.path.join(tree.path, tree.inside))
    return replace(planned, cwd=cwd, setup=((*add, starts[0]), *merges))


def plan_job(job: Job, agent_runs: "AgentRuns | None") -> Planned:
    """With the grant that a job gets before its class has been measured."""
    if agent_runs is None or job.brief is None:
        return Planned(job.name, job.cwd, job.argv, job.env, job.stdin)
    grant = max(prior_of(job.brief.agent).base_bytes, job.memory_bytes)
    launch = agent_runs.launch_first(job, grant, job.brief.model)
    return Planned(job.name, job.cwd, launch.argv, {**launch.env, **job.env}, launch.stdin)


def render_plan(jobs: Iterable[Planned]) -> Iterator[str]:
    for job in jobs:
        yield f"# {shlex.quote(job.name)}"
        env = [f"{name}={hidden(name, text)}" for name, text in sorted(job.env.items())]
        given = f" <<< {shlex.quote(job.stdin)}" if job.stdin is not None else ""
        words = " ".join([*env, shlex.join(job.argv)])
        steps = [*map(shlex.join, job.setup), f"cd {shlex.quote(job.cwd)}", f"{words}{given}"]
        yield " && ".join(steps)


def plan_json(jobs: Iterable[Planned]) -> dict[str, Any]:
    """The object of `--dry-run --json`."""
    return {"dry_run": True, "jobs": [planned_json(job) for job in jobs]}


def planned_json(job: Planned) -> dict[str, Any]:
    env = {name: HIDDEN if is_secret(name) else text for name, text in sorted(job.env.items())}
    return {
        "job": job.name, "cwd": job.cwd, "argv": list(job.argv), "env": env, "stdin": job.stdin,
        "setup": [list(words) for words in job.setup],
    }  # fmt: skip


def hidden(name: str, text: str) -> str:
    return HIDDEN if is_secret(name) else shlex.quote(text)


def is_secret(name: str) -> bool:
    """Secrets must not reach a screen or a log."""
    return any(part in name.upper() for part in SECRET)
