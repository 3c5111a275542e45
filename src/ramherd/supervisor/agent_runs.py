"""The agents' side of the loop: the command line of each run, its output, its cost, and the pace of
starts.

An agent reports on stdout, which the keeper writes to disk; each step reads a part of it. The state
of one run is in `agents/run_state.py`.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ramherd.act.run import LiveRun
from ramherd.act.worktrees.making import argv_in
from ramherd.agents import Agent, Launch, LaunchRequest, find_agent
from ramherd.agents.heap import choose_heap_bytes, parse_node_heap
from ramherd.agents.json_lines import Events
from ramherd.agents.mcp_links import add_args, add_config
from ramherd.agents.price_book import PriceBook
from ramherd.agents.progress import Fact, NearUsageLimit, Overload, Result, TurnStarted
from ramherd.agents.resume_prompt import render_resume_prompt
from ramherd.agents.run_state import AgentRun, Past, one_line, past_from_json
from ramherd.core.errors import UsageError
from ramherd.core.model import (
    ApiRefusal,
    Brief,
    Job,
    JobStatus,
    Reason,
    Refusal,
    RunEnd,
    Settle,
    Stop,
)
from ramherd.core.policies import Policy
from ramherd.core.reasons import reason_from_json
from ramherd.decide.costs import (
    MoneyLeft,
    RunCost,
    choose_model,
    explain_fallback,
    stop_costly,
)
from ramherd.decide.job_bases import needs_base
from ramherd.decide.run_end import is_for_want
from ramherd.decide.stalls import find_stall
from ramherd.decide.start_pace import explain_pause
from ramherd.decide.usage_limits import Quota, explain_near, quota_of
from ramherd.measure.last_error import read_errors
from ramherd.measure.run_output import Follower
from ramherd.supervisor.api_limits import ApiLimits
from ramherd.supervisor.check_agents import (
    Found,
    check_herd_cost,
    find_programs,
    start_gateway_for,
)
from ramherd.supervisor.cost_limit import LEAST_USD, CostLimit, HerdCosts
from ramherd.system.environ import decode_bytes, parse_words

if TYPE_CHECKING:
    from ramherd.agents.mcp_links import McpConfig
    from ramherd.supervisor.agent_servers import AgentServers

# A process for one job is not shared.
LEAST_REUSE = 2
# The output of an adopted run is read at once, in up to this many steps of 512 KiB.
CATCH_UP_STEPS = 16


@dataclass(frozen=True, slots=True)
class JobRecords:
    """Where a supervisor looks up a job that it has not seen before: its program, its last report
    (`jobs.said`), the cost limit and the cost of its herd, the environment of its runs, and the
    file of a field that is too large for the store.
    """

    find: Callable[[Job], Found]
    cost_limit: Callable[[str], CostLimit | None]
    said: Callable[[str], Mapping[str, Any] | None] = lambda _job: None
    env: Callable[[Job], Mapping[str, str]] = lambda job: {**os.environ, **job.env}
    input: Callable[[Job, str], bytes] = lambda _job, _field: b""


class AgentRuns:
    """All agents of a supervisor. `is_occupied`: another process uses the worktree of the job."""

    def __init__(self, records: JobRecords, policy: Policy) -> None:
        self._records = records
        self._kept_bytes = policy.log_head_bytes + policy.log_ring_bytes
        self.costs = HerdCosts(records.cost_limit)
        self.prices = PriceBook()
        # What the last run of each job leaves to the next one.
        self._pasts: dict[str, Past] = {}
        self.limits = ApiLimits()
        # Loaded with the first job that names MCP servers.
        self._servers: AgentServers | None = None
        self.is_occupied: Callable[[Job], bool] = lambda _job: False

    def prepare(
        self, run: LiveRun, grant_bytes: int, *, stopped: Reason | None, short: bool
    ) -> Reason | None:  # fmt: skip
        """Prepares the launch of the run. `stopped`: why the previous run was stopped, if this run
        resumes its session. `short`: memory is short, and the job may have a smaller model for
        that; if so, returns the reason. If the program or an input is missing, the run is refused.
        """
        job, brief = run.job, brief_of(run.job)
        session = self._past(job).progress.session if stopped is not None else ""
        model, why_smaller = self._choose_model(job, short=short)
        try:
            if stopped is not None:
                launch = self.launch(
                    job, grant_bytes, session=session, model=model, stopped=stopped
                )
            else:
                launch = self.launch_first(job, grant_bytes, model)
        except UsageError as error:
            what = f"{error} ({error.hint})" if error.hint else str(error)
            run.refuse(Refusal(errno.ENOENT, what), run.started_s)
            return None
        except OSError as error:
            if is_for_want(error.errno or 0):
                raise
            what = f"cannot read what the job was given {error.filename}: {error.strerror}"
            run.refuse(Refusal(error.errno or errno.EIO, what), run.started_s)
            return None
        agent_run = self._drive(run, find_agent(brief.agent), launch, model, session)
        agent_run.heap_bytes = self._heap_bytes(job, grant_bytes)
        agent_run.fallback = why_smaller
        agent_run.no_servers = self._explain_no_servers(brief, launch)
        cost_limit = self.costs[job.herd]
        if cost_limit is not None and agent_run.agent.holds_to_cost:
            share = self._limit_usd(job) or 0.0
            agent_run.share_usd = agent_run.spent.total_usd + share
            cost_limit.set_share(job.id, share)
        self.limits.record_start(run.id, quota_of(brief, model), run.started_s)
        return why_smaller

    def start_gateway(self, jobs: Iterable[Job]) -> None:
        """Starts the MCP gateway if a job needs it: before the loop, which does not wait for it."""
        start_gateway_for(jobs)

    def _explain_no_servers(self, brief: Brief, launch: Launch) -> Reason | None:
        if not brief.mcp or launch.servers or self._servers is None:
            return None
        return self._servers.explain_missing(brief)

    def _configure_servers(self, job: Job) -> "McpConfig | None":
        """The MCP servers of the job's agent, if it names any."""
        brief = brief_of(job)
        if brief.mcp is None:
            return None
        if self._servers is None:
            from ramherd.supervisor.agent_servers import AgentServers  # noqa: PLC0415 - few herds

            self._servers = AgentServers()
        cwd = brief.tree.directory if brief.tree is not None else job.cwd
        return self._servers.configure(brief, self._records.env(job), cwd)

    def _choose_model(self, job: Job, *, short: bool) -> tuple[str, Reason | None]:
        """The smaller model while memory is short, or while a limit of the job's own lasts."""
        brief = brief_of(job)
        model, why_smaller = choose_model(brief, short=short)
        quota = self.limits.choose_quota(job)
        if why_smaller is not None or quota is None or quota == quota_of(brief):
            return model, why_smaller
        return quota.model, explain_fallback(brief, quota.model)

    def adopt(self, run: LiveRun, *, resumed: bool) -> None:
        """Adopts a run that another supervisor started: all of its output is read again."""
        job = run.job
        session = self._past(job).progress.session if resumed else ""
        said = self._records.said(job.id) or {}
        agent, noted = find_agent(brief_of(job).agent), said.get("run", {})
        agent_run = self._drive(run, agent, Launch(()), said.get("model") or "", session)
        agent_run.heap_bytes = noted.get("heap_bytes", 0)
        agent_run.share_usd = noted.get("share_usd")
        if said.get("fallback"):
            agent_run.fallback = reason_from_json(said["fallback"])
        cost_limit = self.costs[job.herd]
        if cost_limit is not None and agent_run.share_usd is not None:
            cost_limit.set_share(
                job.id, max(agent_run.share_usd - agent_run.past.spent.total_usd, 0.0)
            )
        self._catch_up(run)

    def _drive(
        self, run: LiveRun, agent: Agent, launch: Launch, model: str, session: str
    ) -> AgentRun:  # fmt: skip
        brief = brief_of(run.job)
        agent_run = AgentRun(
            agent, launch, model, Follower(run.dir, "out", self._kept_bytes),
            Events(agent.reader()), past=self._past(run.job), limit_usd=brief.max_cost_usd,
            prices=self.prices,
            cwd=brief.tree.directory if brief.tree is not None else run.job.cwd,
            program=brief.program,
        )  # fmt: skip
        agent_run.go_on(session)
        run.drive(agent_run)
        return agent_run

    def _catch_up(self, run: LiveRun) -> None:
        """The output of a run that has ended is read to its end."""
        agent_run, steps = run.agent_run, 0
        while agent_run is not None and not agent_run.is_read:
            agent_run.read(closed=run.output_closed)
            steps += 1
            if not run.output_closed and (
                steps >= CATCH_UP_STEPS or not agent_run.follower.is_behind
            ):
                return

    def _past(self, job: Job) -> Past:
        if job.id not in self._pasts:
            said = self._records.said(job.id)
            known = said is not None and "past" in said
            self._pasts[job.id] = past_from_json(said["past"]) if said and known else Past()
        return self._pasts[job.id]

    def launch(
        self, job: Job, grant_bytes: int, *, session: str, model: str, stopped: Reason | None = None
    ) -> Launch:
        """`session` is the session to resume, if any; `stopped` is why its last run was stopped."""
        (agent, program), brief = self._records.find(job), brief_of(job)
        ask = LaunchRequest(
            render_resume_prompt(stopped) if session and stopped is not None else brief.prompt,
            session or agent.new_session(),
            model=model,
            args=self._args(job),
            skip_permissions=brief.skip_permissions,
            heap_bytes=self._heap_bytes(job, grant_bytes),
            max_cost_usd=self._limit_usd(job),
            allow=brief.allow,
        )
        config = self._configure_servers(job)
        ask = add_args(ask, config)
        launch = agent.resume(program, ask) if session else agent.start(program, ask)
        if "prompt" in job.large and not session:
            if launch.stdin == brief.prompt:
                launch = replace(launch, stdin="", is_prompt_file=True)
            else:
                launch = agent.start(program, replace(ask, prompt=self._prompt(job)))
        launch = add_config(launch, config)
        if brief.tree is None:
            return launch
        return replace(launch, argv=argv_in(brief.tree, launch.argv))

    def launch_first(self, job: Job, grant_bytes: int, model: str) -> Launch:
        """The launch of a job's first run."""
        warm = self.launch_warm(job, model)
        if warm is not None and "prompt" in job.large:
            warm = self.launch_warm(job, model, self._prompt(job))
        return warm or self.launch(job, grant_bytes, session="", model=model)

    def _prompt(self, job: Job) -> str:
        """The whole prompt: of a large one, the store has only the beginning."""
        if "prompt" not in job.large:
            return brief_of(job).prompt
        return decode_bytes(self._records.input(job, "prompt"))

    def _args(self, job: Job) -> tuple[str, ...]:
        if "args" not in job.large:
            return brief_of(job).args
        return tuple(map(decode_bytes, parse_words(self._records.input(job, "args"))))

    def launch_warm(self, job: Job, model: str, prompt: str | None = None) -> Launch | None:
        """Equal for all jobs that can share a process, except for the prompt. None: the job needs
        its own process, because a cost limit and allowed tools apply to a whole process.
        """
        brief = brief_of(job)
        if brief.reuse < LEAST_REUSE or brief.allow or self._limit_usd(job) is not None:
            return None
        agent, program = self._records.find(job)
        if agent.warm is None:
            return None
        ask = LaunchRequest(
            brief.prompt if prompt is None else prompt,
            model=model,
            args=self._args(job),
            skip_permissions=brief.skip_permissions,
            heap_bytes=choose_heap_bytes(0, job.memory_limit_bytes, self._own_heap_bytes(job)),
        )
        config = self._configure_servers(job)
        return add_config(agent.warm.start(program, add_args(ask, config)), config)

    def _heap_bytes(self, job: Job, grant_bytes: int) -> int:
        """At first the size that NODE_OPTIONS sets, if it does; larger after that heap was full."""
        own = self._own_heap_bytes(job)
        usual = choose_heap_bytes(grant_bytes, job.memory_limit_bytes, own)
        return max(usual, self._past(job).heap_bytes)

    def _own_heap_bytes(self, job: Job) -> int | None:
        """Our option for node would override NODE_OPTIONS. Other runtimes do not read it."""
        if not self._records.find(job).program.node:
            return None
        return parse_node_heap(self._records.env(job).get("NODE_OPTIONS", ""))

    def _limit_usd(self, job: Job) -> float | None:
        """The limit for a CLI that enforces one itself: such a CLI counts from zero in each run."""
        most, cost_limit = brief_of(job).max_cost_usd, self.costs[job.herd]
        left = [] if most is None else [most - self._past(job).spent.total_usd]
        if cost_limit is not None:
            left.append(cost_limit.share_usd())
        return max(min(left), LEAST_USD) if left else None

    def may_start(self, job: Job) -> bool:
        """Whether the job's worktree can be made and is free, and its herd can pay for it now."""
        cost_limit = self.costs[job.herd]
        if needs_base(job) or self.is_occupied(job) or self.costs.is_closed(job.herd):
            return False
        return cost_limit is None or cost_limit.may_start(job.id)

    def read_output(
        self, runs: Iterable[LiveRun], at_s: float
    ) -> Iterator[tuple[str, LiveRun, Reason]]:
        """Reads new output; yields events for the user: kind, run and reason."""
        for run in runs:
            if run.agent_run is not None and not run.agent_run.is_read:
                for fact in run.agent_run.read(closed=run.output_closed):
                    yield from self._receive(run, run.agent_run, fact, at_s)
                if not run.is_ending:
                    run.agent_run.measure_tools(at_s - run.uncounted_s(at_s))

    def find_stalls(
        self, runs: Iterable[LiveRun], stall_after_s: float, at_s: float
    ) -> Iterator[tuple[LiveRun, Reason]]:
        """Agents that have printed nothing for `stall_after_s`, once for each silence."""
        for run in runs:
            agent_run = run.agent_run
            if agent_run is None or run.is_ending or agent_run.progress.result is not None:
                continue
            uncounted_s = run.uncounted_s(at_s)
            silence = agent_run.measure_silence(at_s, uncounted_s)
            reason = find_stall(
                silence, at_s=at_s, uncounted_s=uncounted_s, stall_after_s=stall_after_s,
                tool=agent_run.progress.tool,
            )  # fmt: skip
            if reason is not None:
                agent_run.silence = replace(silence, is_reported=True)
                yield run, reason

    def _receive(
        self, run: LiveRun, agent_run: AgentRun, fact: Fact, at_s: float
    ) -> Iterator[tuple[str, LiveRun, Reason]]:
        quota = quota_of(brief_of(run.job), agent_run.model)
        match fact:
            case Overload(text):
                pause_s = self.limits.slow_down(quota, at_s)
                if pause_s is not None:
                    yield "run_warning", run, explain_pause(one_line(text), pause_s)
            case ApiRefusal():
                yield from self._close(run, agent_run, quota)
            case NearUsageLimit(window, used_share):
                if self.limits.warn_once(quota.agent, quota.account, window):
                    yield "run_warning", run, explain_near(quota.agent, window, used_share)
            case TurnStarted() | Result():
                for reason in self.limits.record_reply(run.id):
                    yield "usage_served", run, reason

    def _close(
        self, run: LiveRun, agent_run: AgentRun, quota: Quota
    ) -> Iterator[tuple[str, LiveRun, Reason]]:
        refusal = agent_run.progress.refusal
        if refusal is None:
            return
        if refusal.until_s is None:
            refusal = replace(refusal, until_s=parse_reset(refusal.what, self.limits.now()))
        refusal = replace(refusal, what=one_line(refusal.what))
        agent_run.set_refusal(refusal)
        if (reason := self.limits.close(run.id, quota, refusal)) is not None:
            yield "usage_limit", run, reason

    def stop_costly(
        self, runs: Iterable[LiveRun], queue: Iterable[JobStatus]
    ) -> list[Stop | Settle]:  # fmt: skip
        """Orders that end runs and herds that have reached their cost limit."""
        costs = dict.fromkeys((status.job.herd for status in queue), 0.0)
        live = []
        for run in runs:
            agent_run, herd = run.agent_run, run.job.herd
            cost = agent_run.counted_here_usd if agent_run is not None else 0.0
            costs[herd] = costs.get(herd, 0.0) + cost
            if not run.is_ending:
                said = agent_run.said if agent_run is not None else None
                live.append(RunCost(run.id, herd, said))
        over = self.costs.close(costs)
        return stop_costly(live, queue if over else (), over)

    def end(self, run: LiveRun, end: RunEnd, *, most_bytes: int) -> None:
        """`most_bytes` is the whole budget: no heap is larger. Nor is a heap larger than a
        `memory_limit`, where the kernel would kill the run instead.
        """
        if run.agent_run is None:
            return
        job, agent_run = run.job, run.agent_run
        with suppress(OSError):  # the environment is gone, and with it the path of the history
            agent_run.count_unreported(self._records.env(job))
        agent_run.read_errors(read_errors(run.dir), is_failed=end is RunEnd.FAILED)
        if run.refused is not None:
            self.withdraw(run)
        elif (cost_limit := self.costs[job.herd]) is not None:
            cost_limit.spent_usd += agent_run.cost_here_usd
            cost_limit.end_run(
                job.id, reported=agent_run.is_cost_known, reply_usd=agent_run.reply_usd
            )
        self.limits.record_end(run.id)
        left, twice = agent_run.leaves, 2 * agent_run.heap_bytes
        if end is RunEnd.HEAP_EXHAUSTED and job.memory_limit_bytes is None and twice <= most_bytes:
            left = replace(left, heap_bytes=left.heap_bytes or twice)
        agent_run.past = self._pasts[job.id] = left

    def read_money_left(self, run: LiveRun) -> MoneyLeft | None:
        """The money left of the job's own limit, once the run has ended. What is left of a herd's
        limit may grow while other runs of the herd go on: `stop_costly` handles that.
        """
        agent_run = run.agent_run
        if agent_run is None or agent_run.limit_usd is None:
            return None
        spent_usd = agent_run.spent.total_usd
        return MoneyLeft("the job", spent_usd, agent_run.limit_usd, agent_run.reply_usd)

    def withdraw(self, run: LiveRun) -> None:
        """Undoes the preparation of a run that never began."""
        self.limits.record_end(run.id)
        if (cost_limit := self.costs[run.job.herd]) is not None:
            cost_limit.withdraw_run(run.job.id)

    def end_job(self, job: Job) -> None:
        """The unspent money of the job becomes available to the other jobs."""
        self._pasts.pop(job.id, None)
        if (cost_limit := self.costs[job.herd]) is not None:
            cost_limit.end_job(job.id)

    def forget_others(self, jobs: Iterable[Job]) -> None:
        """Keeps only `jobs`, which run or are about to; others are read again when needed."""
        kept = {job.id: job.herd for job in jobs}
        self._pasts = {job: past for job, past in self._pasts.items() if job in kept}
        self.costs.forget_others(kept.values())


def parse_reset(text: str, now_s: float) -> float | None:
    from ramherd.agents.reset_times import parse_reset_s  # noqa: PLC0415 - events have the time

    return parse_reset_s(text, now_s)


def brief_of(job: Job) -> Brief:
    assert job.brief is not None
    return job.brief


def make_agent_runs(
    jobs: Iterable[Job], policy: Policy, *,
    max_cost_usd: float | None = None, force: bool = False,
    said: Callable[[str], Mapping[str, Any] | None] | None = None, spent_usd: float = 0.0,
) -> AgentRuns | None:  # fmt: skip
    """For one herd; finds all programs first. None if no job has an agent. `said` and `spent_usd`
    describe earlier runs.
    """
    found = find_programs(jobs, force=force)
    check_herd_cost(jobs, found, max_cost_usd)
    if not found:
        return None
    limited = [job for job in found if found[job].agent.holds_to_cost]
    cost_limit = None if max_cost_usd is None else CostLimit(max_cost_usd, limited, spent_usd)
    return AgentRuns(
        JobRecords(
            lambda job: found[job.id], lambda _herd: cost_limit, said=said or (lambda _job: None)
        ),
        policy,
    )
