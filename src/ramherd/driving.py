"""The agents' side of the loop: what to start, what they said, and what that means.

Programs are found and limits checked before a herd starts. An agent is understood by what it
prints on stdout, which the keeper has put on disk: a little of it is read in each step.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ramherd.act.live import LiveRun
from ramherd.act.worktrees import argv_in
from ramherd.agents import GO_ON, Agent, Ask, Launch, find_agent
from ramherd.agents.args import check_args
from ramherd.agents.facts import Fact, Overload, Progress, Spent, after_spending, next_progress
from ramherd.agents.gemini_history import read_last_run
from ramherd.agents.heap import check_limit, choose_heap_bytes
from ramherd.agents.lines import Events
from ramherd.agents.own import own_pids
from ramherd.agents.programs import Program
from ramherd.agents.trouble import is_overload
from ramherd.decide.ends import cost_reason
from ramherd.errors import UsageError
from ramherd.measure.output import Follower
from ramherd.measure.procfs import read_anonymous_bytes, read_proc
from ramherd.model import (
    Brief,
    Job,
    JobState,
    JobStatus,
    Policy,
    Reason,
    RunEnd,
    Said,
    Settle,
    Stop,
    Why,
)
from ramherd.pacing import Pacing
from ramherd.purse import LEAST_USD, Purse

# Of one run in one step: 10 ms of parsing at the worst.
STEP_BYTES = 512 << 10
TOLD_LENGTH = 300
# A process for one job is not shared.
LEAST_REUSE = 2


@dataclass
class Renewal:
    """A new session, asked of a warm process after its job."""

    since_s: float
    progress: Progress = field(default_factory=Progress)

    @property
    def is_answered(self) -> bool:
        return self.progress.result is not None or self.progress.failure is not None

    @property
    def is_new(self) -> bool:
        """It has said another session than the one before."""
        return self.progress.result is not None and self.progress.opened


class Found(NamedTuple):
    agent: Agent
    program: Program


@dataclass
class Driven:
    """One run of an agent: what was started, and what it said so far."""

    agent: Agent
    launch: Launch
    model: str
    follower: Follower
    events: Events
    progress: Progress = field(default_factory=Progress)
    # What earlier sessions of its job have taken.
    before: Spent = field(default_factory=Spent)
    turns_before: int = 0
    limit_usd: float | None = None
    share_usd: float | None = None
    heap_bytes: int = 0
    resumed: bool = False
    through: bool = False
    renewal: Renewal | None = None

    def read(self, *, closed: bool) -> list[Fact]:
        """What is new. `closed`: nothing more will be printed."""
        facts = [f for piece in self.follower.read(STEP_BYTES) for f in self.events.feed(piece)]
        if closed and not self.through and not self.follower.is_behind:
            self.through = True
            facts += self.events.close()
        if self.renewal is not None:
            self.renewal.progress = next_progress(self.renewal.progress, facts)
        else:
            self.progress = next_progress(self.progress, facts)
        return facts

    def renew(self, at_s: float) -> str:
        """What to ask for a new session: from now on the process no longer speaks of this job."""
        assert self.agent.warm is not None
        self.renewal = Renewal(at_s)
        return self.agent.warm.fresh

    def count_unsaid(self, env: Mapping[str, str]) -> None:
        """gemini says its tokens with its result: of a run that was stopped, its history does."""
        at = self.progress
        if self.agent.name == "gemini" and at.opened and at.result is None and at.failure is None:
            self.progress = after_spending(at, read_last_run(at.session, env))

    @property
    def said(self) -> Said:
        at = self.progress
        return Said(
            result=at.result is not None,
            busy=bool(at.tools),
            needs_result=self.agent.needs_result,
            failure=one_line(at.failure or ""),
            overloaded=at.failure is not None and is_overload(at.failure),
            cost_usd=self.spent.cost_usd,
            limit_usd=self.limit_usd,
            share_usd=self.share_usd,
            lost_session=self.resumed and not at.opened,
        )

    @property
    def doing(self) -> str:
        """For people who watch."""
        turns = self.turns_before + self.progress.turns
        return f"turn {turns} {self.progress.tool}".rstrip() if turns else ""

    @property
    def spent(self) -> Spent:
        at = self.progress
        whole = after_spending(at, replace(self.before, whole=False))
        return Spent(whole.tokens_in, whole.tokens_out, whole.cost_usd)

    def own_bytes(self, run: LiveRun) -> int | None:
        """What the agent's own processes hold; None while a tool is in use."""
        if run.pen is None or run.first is None or self.progress.tools:
            return None
        procs = [proc for pid in run.pen.pids() if (proc := read_proc(pid)) is not None]
        return sum(read_anonymous_bytes(pid) for pid in own_pids(procs, run.first.pid))

    def as_json(self) -> dict[str, Any]:
        spent, at = self.spent, self.progress
        return {
            "session": at.session or None,
            "turns": self.turns_before + at.turns,
            "tokens_in": spent.tokens_in,
            "tokens_out": spent.tokens_out,
            "cost_usd": round(spent.cost_usd, 6) if self.agent.reports_cost else None,
            "result": at.result,
            "model": self.model or None,
        }


class Driving:
    """The agents of one herd."""

    def __init__(
        self, found: Mapping[str, Found], policy: Policy, max_cost_usd: float | None
    ) -> None:
        self._found = found
        self._kept_bytes = policy.log_head_bytes + policy.log_ring_bytes
        self._max_cost_usd = max_cost_usd
        # The last run of each job that has ended.
        self._ended: dict[str, Driven] = {}
        # The herd has cost as much as it may: nothing starts any more.
        self.closed = False
        # Of jobs whose first heap was too small.
        self._larger: dict[str, int] = {}
        self.pacing = Pacing()
        self._purse = make_purse(found, max_cost_usd)

    def begin(
        self, run: LiveRun, grant_bytes: int, *, resumed: bool, short: bool
    ) -> Reason | None:  # fmt: skip
        """What the run is to start. `short`: memory is, and the job may have a smaller model for
        that; the reason is given if so.
        """
        job, brief = run.job, brief_of(run.job)
        last = self._ended.get(job.id)
        session = last.progress.session if last is not None and resumed else ""
        model = brief.fallback_model if short and brief.fallback_model else brief.model
        launch = None if session else self.launch_warm(job, model)
        launch = launch or self.launch(job, grant_bytes, session=session, model=model)
        agent = self._found[job.id].agent
        run.driven = driven = Driven(
            agent, launch, model, Follower(run.dir, "out", self._kept_bytes),
            Events(agent.reader()), resumed=bool(session), limit_usd=brief.max_cost_usd,
            heap_bytes=self._heap_bytes(job, grant_bytes),
        )  # fmt: skip
        if last is not None and session:
            driven.progress = last.progress.resumed()
            driven.before, driven.turns_before = last.before, last.turns_before
        elif last is not None:
            driven.before = last.spent
            driven.turns_before = last.turns_before + last.progress.turns
        if self._purse is not None and agent.holds_to_cost:
            told = self._told_usd(job) or 0.0
            driven.share_usd = driven.spent.cost_usd + told
            self._purse.tell(job.id, told)
        self.pacing.note_start(run.label, run.started_s)
        if model == brief.model:
            return None
        return Reason(Why.STEP_DOWN, model=model, usual=brief.model or "its usual one")

    def launch(self, job: Job, grant_bytes: int, *, session: str, model: str) -> Launch:
        """`session` is the one to go on in, if any."""
        (agent, program), brief = self._found[job.id], brief_of(job)
        ask = Ask(
            GO_ON if session else brief.prompt,
            session or agent.new_session(),
            model=model,
            args=brief.args,
            skip_permissions=brief.skip_permissions,
            heap_bytes=self._heap_bytes(job, grant_bytes),
            max_cost_usd=self._told_usd(job),
        )
        launch = agent.resume(program, ask) if session else agent.start(program, ask)
        if brief.tree is None:
            return launch
        return replace(launch, argv=argv_in(brief.tree, launch.argv))

    def launch_warm(self, job: Job, model: str) -> Launch | None:
        """The same for all that can share a process, but for the prompt. None: the job has one of
        its own. What a job costs is limited by its process.
        """
        (agent, program), brief = self._found[job.id], brief_of(job)
        if brief.reuse < LEAST_REUSE or agent.warm is None or self._told_usd(job) is not None:
            return None
        ask = Ask(
            brief.prompt,
            model=model,
            args=brief.args,
            skip_permissions=brief.skip_permissions,
            heap_bytes=choose_heap_bytes(0, job.memory_limit_bytes),
        )
        return agent.warm.start(program, ask)

    def _heap_bytes(self, job: Job, grant_bytes: int) -> int:
        usual = choose_heap_bytes(grant_bytes, job.memory_limit_bytes)
        return max(usual, self._larger.get(job.id, 0))

    def _told_usd(self, job: Job) -> float | None:
        """For a CLI that holds to a limit itself: it counts anew in each run."""
        most, last = brief_of(job).max_cost_usd, self._ended.get(job.id)
        left = [] if most is None else [most - (last.spent.cost_usd if last is not None else 0.0)]
        if self._purse is not None:
            left.append(self._purse.share_usd())
        return max(min(left), LEAST_USD) if left else None

    def may_start(self, job: str) -> bool:
        """Whether there is money for it now."""
        return not self.closed and (self._purse is None or self._purse.may_start(job))

    def hear(self, runs: Iterable[LiveRun], at_s: float) -> Iterator[tuple[LiveRun, Reason]]:
        """Reads on; what is worth telling of it."""
        for run in runs:
            if run.driven is not None and not run.driven.through:
                for fact in run.driven.read(closed=run.output_closed):
                    if isinstance(fact, Overload):
                        yield from self._slow_down(run, fact, at_s)

    def _slow_down(
        self, run: LiveRun, fact: Overload, at_s: float
    ) -> Iterator[tuple[LiveRun, Reason]]:
        pause_s = self.pacing.slow_down(run.label, at_s)
        if pause_s is not None:
            yield run, Reason(Why.OVERLOAD, what=one_line(fact.text), pause_s=pause_s)

    def stop_costly(
        self, runs: Iterable[LiveRun], queue: Iterable[JobStatus]
    ) -> list[Stop | Settle]:  # fmt: skip
        """What ends because it has cost as much as it may: a run, or all of the herd."""
        live = [run for run in runs if not run.is_ending]
        reason = self._herd_cost(runs)
        if reason is not None:
            self.closed = True
            stops = [Stop(run.id, RunEnd.CANCELLED, reason) for run in live]
            return [*stops, *(Settle(s.job.id, JobState.CANCELLED, reason) for s in queue)]
        return [
            Stop(run.id, RunEnd.FAILED, cost_reason("it", said.cost_usd, said.limit_usd or 0.0))
            for run in live
            if run.driven is not None and (said := run.driven.said).is_too_costly
            if not said.result
        ]

    def _herd_cost(self, runs: Iterable[LiveRun]) -> Reason | None:
        if self._max_cost_usd is None:
            return None
        now = {run.job.id: run.driven for run in runs if run.driven is not None}
        cost = sum(driven.spent.cost_usd for driven in {**self._ended, **now}.values())
        if cost < self._max_cost_usd:
            return None
        return cost_reason("the herd", cost, self._max_cost_usd)

    def end(self, run: LiveRun, end: RunEnd, *, most_bytes: int) -> None:
        """`most_bytes` is the whole budget, and no heap is larger; nor than a `memory_limit`, where
        the kernel would kill instead.
        """
        if run.driven is None:
            return
        run.driven.count_unsaid({**os.environ, **run.job.env})
        run.driven.events = Events(run.driven.agent.reader())
        if self._purse is not None:
            self._pay(self._purse, run.job.id, run.driven)
        self._ended[run.job.id] = run.driven
        if end is RunEnd.HEAP_EXHAUSTED and run.job.memory_limit_bytes is None:
            twice = 2 * run.driven.heap_bytes
            if twice <= most_bytes:
                self._larger.setdefault(run.job.id, twice)

    def _pay(self, purse: Purse, job: str, driven: Driven) -> None:
        last, at = self._ended.get(job), driven.progress
        purse.spent_usd += driven.spent.cost_usd - (
            last.spent.cost_usd if last is not None else 0.0
        )
        purse.end_run(job, said=at.result is not None or at.failure is not None)

    def end_job(self, job: str) -> None:
        """What it has not cost is for the others."""
        if self._purse is not None:
            self._purse.end_job(job)


def make_purse(found: Mapping[str, Found], max_cost_usd: float | None) -> Purse | None:
    if max_cost_usd is None:
        return None
    return Purse(max_cost_usd, (job for job in found if found[job].agent.holds_to_cost))


def one_line(text: str) -> str:
    """What an agent says of a failure may be pages."""
    words = " ".join(text.split())
    return words if len(words) <= TOLD_LENGTH else words[: TOLD_LENGTH - 3] + "..."


def brief_of(job: Job) -> Brief:
    assert job.brief is not None
    return job.brief


def find_programs(jobs: Iterable[Job], *, force: bool = False) -> dict[str, Found]:
    """The program of each job with an agent; what cannot work is refused before anything starts.
    `force`: also below the memory that an agent is known to need.
    """
    known: dict[tuple[str, str, str], Found] = {}
    found = {}
    for job in jobs:
        if job.brief is None:
            continue
        path = job.env.get("PATH", os.environ.get("PATH", os.defpath))
        key = job.brief.agent, path, job.brief.program
        if key not in known:
            agent = find_agent(job.brief.agent)
            known[key] = Found(agent, agent.find(path, job.brief.program))
        found[job.id] = known[key]
        check_job(job, job.brief, known[key].agent, force=force)
    return found


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


def make_driving(
    jobs: Iterable[Job], policy: Policy, *, max_cost_usd: float | None = None, force: bool = False
) -> Driving | None:
    """None where no job has an agent."""
    found = find_programs(jobs, force=force)
    if max_cost_usd is not None:
        for job in jobs:
            if job.id in found:
                check_cost(found[job.id].agent, job.name)
    return Driving(found, policy, max_cost_usd) if found else None
