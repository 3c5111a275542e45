"""What the store knows for a plan: sizes of earlier runs, limits of the API, and costs."""

import os
import time
from collections.abc import Sequence

from ramherd.core.model import Job
from ramherd.core.units import count, format_duration
from ramherd.decide.governor.classes import KEEP_RUNS, ClassRecord, prior_of
from ramherd.plan.agent_groups import AgentGroup
from ramherd.plan.make_plan import Bound
from ramherd.plan.request import Question
from ramherd.store.classes import Known, read_class, read_classes
from ramherd.store.prices import read_job_costs
from ramherd.store.protocol import Store
from ramherd.store.usage_windows import read_windows
from ramherd.supervisor.estimates import class_of, label_of


def find_record(store: Store | None, agent: str) -> ClassRecord:
    """Runs of the agent in this directory; if there are none, in all directories."""
    known = [] if store is None else [one for one in read_classes(store) if one.key.agent == agent]
    here = [one for one in known if one.key.project == os.getcwd()]
    return merged(here or known, agent)


def merged(known: Sequence[Known], agent: str) -> ClassRecord:
    """The newest class first."""
    recent = tuple(run for one in known for run in reversed(one.record.recent))[:KEEP_RUNS]
    return ClassRecord(recent[::-1], sum(one.record.runs for one in known), 0, prior_of(agent))


def job_groups(jobs: Sequence[Job], store: Store | None) -> list[AgentGroup]:
    """Jobs of one class with the same `memory` are alike."""
    numbers: dict[tuple[str, int], int] = {}
    keys = {label_of(class_of(job)): class_of(job) for job in jobs}
    for job in jobs:
        known = (label_of(class_of(job)), job.memory_bytes)
        numbers[known] = numbers.get(known, 0) + 1
    return [
        AgentGroup(
            keys[label].agent, number,
            ClassRecord(prior=prior_of(keys[label].agent)) if store is None
            else read_class(store, keys[label]),
            memory or None, label=f"{label}\0{memory}",
        )
        for (label, memory), number in numbers.items()
    ]  # fmt: skip


def read_limit_bound(store: Store, agent: str) -> Bound:
    """A limit that was hit is known; how much a plan allows is not published."""
    now_s = time.time()
    closed = [one for one in read_windows(store) if one.agent == agent and one.until_s > now_s]
    if not closed:
        why = "no usage limit is open now; jobs that hit one wait for its reset"
        return Bound("API limits", None, why)
    left = format_duration(max(one.until_s for one in closed) - now_s)
    return Bound("API limits", 0.0, f"{closed[0].what} of {agent}, for another {left}")


def read_cost_bound(store: Store, question: Question) -> Bound:
    costs = {name: (mean, jobs) for name, mean, jobs in read_job_costs(store)}
    if question.agent not in costs:
        return Bound("cost", None, f"no cost of {question.agent} is known here yet")
    mean, jobs = costs[question.agent]
    text = f"${mean:.2f} a job (mean of {count(jobs, 'job')} here)"
    if question.agents is not None:
        text += f", ${mean * question.agents:.2f} for {question.agents}"
    return Bound("cost", None, f"{text}; a limit: --max-cost-usd")
