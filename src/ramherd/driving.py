"""The agents' side of the loop: what to start, what they said, and what that means.

An agent is understood by what it prints on stdout, which the keeper has put on disk: a little of
it is read in each step. What is known of one run is in `driven.py`.
"""

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ramherd.act.live import LiveRun
from ramherd.act.worktrees import argv_in
from ramherd.agentjobs import Found, check_herd_cost, find_programs
from ramherd.agents import GO_ON, Agent, Ask, Launch, find_agent
from ramherd.agents.facts import Overload
from ramherd.agents.heap import choose_heap_bytes
from ramherd.agents.lines import Events
from ramherd.costs import Account, Costs
from ramherd.decide.ends import cost_reason
from ramherd.decide.pace import Pace, after_overload, after_start, next_pace
from ramherd.driven import Driven, Past, one_line, past_from_json
from ramherd.errors import UsageError
from ramherd.measure.output import Follower
from ramherd.model import (
    Brief,
    Job,
    JobState,
    JobStatus,
    Policy,
    Reason,
    RunEnd,
    Settle,
    Stop,
    Why,
)

# No CLI takes a limit of nothing.
LEAST_USD = 1e-6
# What an adopted run has printed is read at once, up to here: steps of 512 KiB.
CATCH_UP_STEPS = 16


@dataclass(frozen=True, slots=True)
class Records:
    """Where a supervisor that does not know a job from before finds it: its program, what was
    said of it (`jobs.said`), what its herd may cost and has cost.
    """

    find: Callable[[Job], Found]
    account: Callable[[str], Account]
    said: Callable[[str], Mapping[str, Any] | None] = lambda _job: None


class Driving:
    """All agents of a supervisor."""

    def __init__(self, records: Records, policy: Policy) -> None:
        self._records = records
        self._kept_bytes = policy.log_head_bytes + policy.log_ring_bytes
        self.costs = Costs(records.account)
        # What the last run of each job has left to the next.
        self._pasts: dict[str, Past] = {}
        self._paces: dict[str, Pace] = {}

    def begin(
        self, run: LiveRun, grant_bytes: int, *, resumed: bool, short: bool
    ) -> Reason | None:  # fmt: skip
        """What the run is to start. `short`: memory is, and the job may have a smaller model for
        that; the reason is given if so. A program that is gone refuses the run.
        """
        job, brief = run.job, brief_of(run.job)
        session = self._past(job).progress.session if resumed else ""
        model = brief.fallback_model if short and brief.fallback_model else brief.model
        try:
            launch = self.launch(job, grant_bytes, session=session, model=model)
        except UsageError as error:
            run.refused = (errno.ENOENT, f"{error} ({error.hint})" if error.hint else str(error))
            return None
        self._drive(run, find_agent(brief.agent), launch, model, session)
        if run.label in self._paces:
            self._paces[run.label] = after_start(self._paces[run.label], run.started_s)
        if model == brief.model:
            return None
        return Reason(Why.STEP_DOWN, model=model, usual=brief.model or "its usual one")

    def adopt(self, run: LiveRun, *, resumed: bool) -> None:
        """A run that another supervisor has started: all that it printed is read again."""
        job = run.job
        session = self._past(job).progress.session if resumed else ""
        model = (self._records.said(job.id) or {}).get("model") or ""
        self._drive(run, find_agent(brief_of(job).agent), Launch(()), model, session)
        self._catch_up(run)

    def _drive(
        self, run: LiveRun, agent: Agent, launch: Launch, model: str, session: str
    ) -> None:  # fmt: skip
        run.driven = Driven(
            agent, launch, model, Follower(run.dir, "out", self._kept_bytes),
            Events(agent.reader()), past=self._past(run.job), limit_usd=self._limit_usd(run.job),
        )  # fmt: skip
        run.driven.go_on(session)

    def _catch_up(self, run: LiveRun) -> None:
        """One that is over is heard out."""
        driven, steps = run.driven, 0
        while driven is not None and not driven.through:
            driven.read(closed=run.output_closed)
            steps += 1
            if not run.output_closed and (steps >= CATCH_UP_STEPS or not driven.follower.is_behind):
                return

    def _past(self, job: Job) -> Past:
        if job.id not in self._pasts:
            said = self._records.said(job.id)
            known = said is not None and "past" in said
            self._pasts[job.id] = past_from_json(said["past"]) if said and known else Past()
        return self._pasts[job.id]

    def launch(self, job: Job, grant_bytes: int, *, session: str, model: str) -> Launch:
        """`session` is the one to go on in, if any."""
        (agent, program), brief = self._records.find(job), brief_of(job)
        larger = self._past(job).larger
        ask = Ask(
            GO_ON if session else brief.prompt,
            session or agent.new_session(),
            model=model,
            skip_permissions=brief.skip_permissions,
            heap_bytes=choose_heap_bytes(grant_bytes, job.memory_limit_bytes, larger=larger),
            max_cost_usd=self._left_usd(job),
        )
        launch = agent.resume(program, ask) if session else agent.start(program, ask)
        if brief.tree is None:
            return launch
        return replace(launch, argv=argv_in(brief.tree, launch.argv))

    def _limit_usd(self, job: Job) -> float | None:
        left = self._left_usd(job)
        return None if left is None else left + self._past(job).spent.cost_usd

    def _left_usd(self, job: Job) -> float | None:
        """For a CLI that holds to a limit itself: it counts anew in each run. One that says its
        cost at the end only would go past what is left of the herd's, too.
        """
        most = brief_of(job).max_cost_usd
        left = [] if most is None else [most - self._past(job).spent.cost_usd]
        if (of_herd := self.costs.left_usd(job.herd)) is not None:
            left.append(of_herd)
        return max(min(left), LEAST_USD) if left else None

    def hear(self, runs: Iterable[LiveRun], at_s: float) -> Iterator[tuple[LiveRun, Reason]]:
        """Reads on; what is worth telling of it."""
        for run in runs:
            if run.driven is not None and not run.driven.through:
                for fact in run.driven.read(closed=run.output_closed):
                    if isinstance(fact, Overload) and self._slow_down(run.label, at_s):
                        yield run, Reason(Why.OVERLOAD, what=one_line(fact.text))

    def _slow_down(self, label: str, at_s: float) -> bool:
        before = self._paces.get(label, Pace())
        self._paces[label] = after_overload(before, at_s)
        return self._paces[label] is not before

    def stop_costly(
        self, runs: Iterable[LiveRun], queue: Iterable[JobStatus]
    ) -> list[Stop | Settle]:  # fmt: skip
        """What ends because it has cost as much as it may: a run, or all of a herd."""
        over = self._costly_herds(runs, queue)
        live = [run for run in runs if not run.is_ending]
        return [
            *(Stop(r.id, RunEnd.CANCELLED, over[r.job.herd]) for r in live if r.job.herd in over),
            *(
                Settle(status.job.id, JobState.CANCELLED, over[status.job.herd])
                for status in queue
                if status.job.herd in over
            ),
            *(
                Stop(run.id, RunEnd.FAILED, cost_reason("it", said.cost_usd, said.limit_usd or 0.0))
                for run in live
                if run.job.herd not in over
                if run.driven is not None and (said := run.driven.said).is_too_costly
                if not said.result
            ),
        ]

    def _costly_herds(
        self, runs: Iterable[LiveRun], queue: Iterable[JobStatus]
    ) -> dict[str, Reason]:  # fmt: skip
        live = dict.fromkeys((status.job.herd for status in queue), 0.0)
        for run in runs:
            cost = run.driven.cost_here_usd if run.driven is not None else 0.0
            live[run.job.herd] = live.get(run.job.herd, 0.0) + cost
        found = {herd: self.costs.close(herd, cost) for herd, cost in live.items()}
        return {herd: reason for herd, reason in found.items() if reason is not None}

    def not_before_s(self, label: str, at_s: float) -> float:
        pace = self._paces.get(label)
        if pace is None:
            return 0.0
        self._paces[label] = next_pace(pace, at_s)
        return self._paces[label].next_s

    def end(self, run: LiveRun, end: RunEnd, *, most_bytes: int) -> None:
        """`most_bytes` is the whole budget: a larger heap than that is none."""
        if run.driven is None:
            return
        self.costs[run.job.herd].spent_usd += run.driven.cost_here_usd
        left = run.driven.leaves
        if end is RunEnd.HEAP_EXHAUSTED:
            larger = choose_heap_bytes(run.grant_bytes, run.job.memory_limit_bytes, larger=True)
            left = replace(left, larger=left.larger or larger <= most_bytes)
        run.driven.past = self._pasts[run.job.id] = left

    def forget(self, job: str) -> None:
        """One that has ended."""
        self._pasts.pop(job, None)

    def keep(self, jobs: Iterable[Job], labels: Iterable[str]) -> None:
        """What is at work or about to be; the records have the rest."""
        kept, named = {job.id: job.herd for job in jobs}, set(labels)
        self._pasts = {job: past for job, past in self._pasts.items() if job in kept}
        self._paces = {label: pace for label, pace in self._paces.items() if label in named}
        self.costs.keep(kept.values())


def brief_of(job: Job) -> Brief:
    assert job.brief is not None
    return job.brief


def make_driving(
    jobs: Iterable[Job], policy: Policy, *, max_cost_usd: float | None = None, force: bool = False
) -> Driving | None:
    """Of one herd, with all programs found first. None where no job has an agent."""
    found = find_programs(jobs, force=force)
    check_herd_cost(jobs, found, max_cost_usd)
    if not found:
        return None
    records = Records(lambda job: found[job.id], lambda _herd: Account(max_cost_usd))
    return Driving(records, policy)
