"""How runs end: when a run is stopped, when it is over, and which end it counts as."""

import errno
from collections.abc import Sequence

from ramherd.core.agent_task import NO_ACCESS, name_window
from ramherd.core.model import (
    Action,
    ApiRefusal,
    Clear,
    Exit,
    Finish,
    Job,
    Kill,
    Reason,
    Refusal,
    RunEnd,
    RunView,
    Said,
    Snapshot,
    Stop,
    Stopping,
    Why,
)
from ramherd.core.policies import Policy
from ramherd.core.run_phase import is_live as is_phase_live

SIGABRT, SIGKILL = 6, 9
URGENT = (RunEnd.LIMIT_KILL, RunEnd.LOST)
# Restarts at a moment that we choose.
LEAKING = (Why.LEAK, Why.OVER_MARK)
# A run killed this soon after its start was never at work.
BIRTH_S = 2.0
MACHINE_ERRORS = (errno.ENOMEM, errno.EAGAIN, errno.ENFILE, errno.EMFILE)
# Failures while a run is prepared that are the job's own: a cgroup refuses its `memory_limit`, or
# its stdin is larger than a file may be. All other failures come from our directories, our cgroups
# or the machine.
JOB_ERRORS = (errno.EINVAL, errno.ERANGE, errno.EFBIG)


def stop_interrupted(snapshot: Snapshot) -> list[Action]:
    """The first signal ends every run with TERM and a grace period."""
    if not snapshot.interrupts:
        return []
    reason = Reason(Why.INTERRUPTED, signals=snapshot.interrupts)
    return [Stop(run.run, RunEnd.CANCELLED, reason) for run in snapshot.runs if is_live(run)]


def stop_timed_out(snapshot: Snapshot) -> list[Action]:
    """`timeout` ends the whole pen. Time while held, or while the machine slept, does not count."""
    return [
        Stop(run.run, RunEnd.TIMEOUT, Reason(Why.TIMEOUT, limit_s=limit, ran_s=round(ran, 3)))
        for run in snapshot.runs
        if (limit := run.job.timeout_s) is not None and is_live(run)
        if (ran := snapshot.at_s - run.started_s - run.uncounted_s) >= limit
    ]


def stop_over_limit(snapshot: Snapshot) -> list[Action]:
    """Polling pens have no limit in the kernel: the last reading is compared with the limit."""
    return [
        Stop(run.run, RunEnd.LIMIT_KILL, limit_reason(run, limit))
        for run in snapshot.runs
        if not run.kernel_limits and is_live(run)
        if (limit := run.job.memory_limit_bytes) is not None and run.pen.used_bytes > limit
    ]


def stop_over_budget(snapshot: Snapshot, budget: int, policy: Policy) -> list[Action]:
    """When the fleet is about to reach its hard limit, the youngest run is returned to the queue:
    the kernel would kill the largest run, which is mostly the oldest. The oldest run continues; if
    it is alone and still too big, waiting does not help.
    """
    live = sorted((run for run in snapshot.runs if is_live(run)), key=lambda run: run.started_s)
    over = snapshot.fleet_used_bytes - budget - policy.fleet_mark_bytes
    if over <= 0 or not live or any(is_leaving(run) for run in snapshot.runs):
        return []
    used = snapshot.fleet_used_bytes
    if len(live) > 1:
        reason = Reason(Why.OVER_BUDGET, used_bytes=used, budget_bytes=budget)
        return [Stop(live[-1].run, RunEnd.PREEMPTED, reason)]
    if live[0].pen.used_bytes <= budget:
        return []
    too_big = Reason(Why.TOO_BIG, need_bytes=live[0].pen.used_bytes, budget_bytes=budget)
    return [Stop(live[0].run, RunEnd.FAILED, too_big)]


def kill_overdue(snapshot: Snapshot, policy: Policy) -> list[Action]:
    """Send KILL after the grace period, or after a second signal."""
    return [
        Kill(run.run, Reason(Why.GRACE_OVER, grace_s=grace))
        for run in snapshot.runs
        if (told := told_to_end(run, policy)) is not None
        if is_lingering(run) and not is_given_up(run, snapshot, policy)
        for since, grace in [told]
        if snapshot.at_s - since >= (0.0 if is_hurried(run, snapshot) else grace)
    ]


def told_to_end(run: RunView, policy: Policy) -> tuple[float, float] | None:
    """Since when a run is being ended, and the grace before KILL."""
    if is_live(run):
        return None
    if run.killed_s is not None:
        return run.killed_s, policy.kill_again_s
    if run.stop is not None:
        return run.stop.since_s, stop_grace_s(run, run.stop, policy)
    if run.clearing_s is not None:
        return run.clearing_s, policy.leftover_grace_s
    return None


def stop_grace_s(run: RunView, stop: Stopping, policy: Policy) -> float:
    """There is no grace where memory is short: a run over its limit would keep growing. A run that
    makes room gets little, because another run waits for its memory. So does an agent that is
    restarted between two turns: its session is on disk.
    """
    if stop.end in URGENT or stop.reason.why in (Why.TOO_BIG, Why.OVER_BUDGET):
        return 0.0
    if stop.end is RunEnd.PREEMPTED:
        return policy.preempt_grace_s if run.job.resumes else 0.0
    if stop.reason.why in LEAKING and run.job.brief is not None:
        return policy.recycle_grace_s
    return policy.grace_s


def is_hurried(run: RunView, snapshot: Snapshot) -> bool:
    """A second signal ends the grace period."""
    return snapshot.interrupts > 1 and run.killed_s is None


def clear_leftovers(snapshot: Snapshot) -> list[Action]:
    """Processes that a run's first process left behind are ended."""
    return [
        Clear(run.run, Reason(Why.LEFTOVERS, processes=run.pen.procs))
        for run in snapshot.runs
        if run.exit is not None and run.pen.procs and run.clearing_s is None and run.stop is None
    ]


def finish_ended(snapshot: Snapshot, policy: Policy) -> list[Finish]:
    """A run is over when its first process has ended, its pen is empty and all its output is on
    disk; when it never began; when its process is free for the next job; or when its remaining
    processes cannot be ended.
    """
    return [
        Finish(run.run, *judge(run))
        for run in snapshot.runs
        if run.refused is not None
        or (run.ready and is_live(run))
        or (run.exit is not None and run.pen.procs == 0 and run.output_closed)
        or is_given_up(run, snapshot, policy)
    ]


def is_given_up(run: RunView, snapshot: Snapshot, policy: Policy) -> bool:
    since = run.stop.since_s if run.stop is not None else run.clearing_s
    if since is None or run.killed_s is None:
        return False
    return snapshot.at_s - since >= policy.grace_s + policy.give_up_s


def judge(run: RunView) -> tuple[RunEnd, Reason]:
    """The end that the run counts as. Our own actions come first, then those of the kernel."""
    if run.stop is not None and not has_come_through(run, run.stop):
        return run.stop.end, run.stop.reason
    if run.refused is not None:
        return judge_refusal(run.refused)
    if run.exit is None and run.ready:
        return RunEnd.DONE, Reason(Why.SAID_DONE)
    if run.exit is None:
        return RunEnd.LOST, Reason(Why.KEEPER_LOST)
    # A shell reports the kill of its child as 128 + 9.
    if run.pen.kernel_kills and (run.exit.signal == SIGKILL or run.exit.code == 128 + SIGKILL):
        return judge_kernel_kill(run)
    return judge_exit(run, run.exit)


def has_come_through(run: RunView, stop: Stopping) -> bool:
    """The run was to be resumed later, but its agent reported success before it ended."""
    later = stop.end in (RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.LOST)
    return later and run.exit is not None and run.said is not None and run.said.through


def is_failed_start(run: RunView, end: RunEnd, at_s: float) -> bool:
    """Whether a start failed for lack of memory: a sign of a full machine, not a fault of the job.
    A full V8 heap does not count: its size is a setting.
    """
    if end is RunEnd.LOST and run.refused is not None:
        return is_for_memory(run.refused.errno)
    return end is RunEnd.OOM_KILL and at_s - run.started_s < BIRTH_S


def judge_exit(run: RunView, exit_: Exit) -> tuple[RunEnd, Reason]:
    if run.heap_exhausted:
        return RunEnd.HEAP_EXHAUSTED, Reason(Why.HEAP_EXHAUSTED, peak_bytes=run.pen.peak_bytes)
    if run.said is not None and run.said.refusal is not None and not run.said.result:
        return RunEnd.PREEMPTED, explain_refusal(run.job, run.said.refusal)
    if run.said is not None and (told := judge_words(run.said, exit_)) is not None:
        return told
    if run.is_node and (exit_.signal == SIGABRT or exit_.code == 128 + SIGABRT):
        return RunEnd.FAILED, Reason(Why.NODE_ABORT, peak_bytes=run.pen.peak_bytes)
    if exit_.signal is not None:
        return RunEnd.FAILED, Reason(Why.SIGNALLED, signal=exit_.signal)
    code = exit_.code or 0
    return RunEnd.FAILED if code else RunEnd.DONE, Reason(Why.EXITED, code=code)


def judge_words(said: Said, exit_: Exit) -> tuple[RunEnd, Reason] | None:
    """An agent's report counts for more than its exit code: some agents exit with 0 after they gave
    up, and a stopped agent reports nothing. codex leaves a tool behind that takes too long; with
    exit code 0 that is ignored.
    """
    if said.through or (said.result and exit_.code == 0):
        return RunEnd.DONE, Reason(Why.SAID_DONE)
    if said.lost_session and exit_.code:
        return RunEnd.LOST, Reason(Why.SESSION_LOST)
    if said.failure:
        return RunEnd.FAILED, judge_failure(said)
    if exit_.code == 0 and said.needs_result:
        return RunEnd.FAILED, Reason(Why.NO_RESULT)
    return None


def explain_refusal(job: Job, refusal: ApiRefusal) -> Reason:
    """The API has stopped serving the account, which is not a failure of the job."""
    agent = job.brief.agent if job.brief is not None else ""
    if refusal.window == NO_ACCESS:
        return Reason(Why.NO_ACCESS, agent=agent, what=refusal.what)
    return explain_limit(agent, refusal.window, refusal.what, refusal.until_s)


def explain_limit(agent: str, window: str, what: str, until_s: float | None) -> Reason:
    """`until_s` is None if the API does not report when its limit resets."""
    until = {} if until_s is None else {"until_at": round(until_s)}
    return Reason(Why.USAGE_LIMIT, agent=agent, window=name_window(window), what=what, **until)


def stop_without_access(snapshot: Snapshot) -> list[Action]:
    """An agent whose API rejects its account would keep trying for minutes."""
    return [
        Stop(run.run, RunEnd.PREEMPTED, explain_refusal(run.job, run.said.refusal))
        for run in snapshot.runs
        if run.said is not None and run.said.refusal is not None and is_live(run)
        if run.said.refusal.window == NO_ACCESS and not run.said.has_ended
    ]


def judge_failure(said: Said) -> Reason:
    if said.is_too_costly:
        return cost_reason("the job", said.cost_usd, said.limit_usd or 0.0)
    if said.has_spent_share:
        return Reason(Why.COST_SHARE, cost_usd=round(said.cost_usd, 6))
    return Reason(Why.OVERLOAD if said.overloaded else Why.GAVE_UP, what=said.failure)


def explain_denials(calls: Sequence[str], end: RunEnd) -> Reason | None:
    """A warning for the user: the agent may have answered although its tool calls were denied.
    There is none for a run that is resumed later.
    """
    if not calls or end not in (RunEnd.DONE, RunEnd.FAILED):
        return None
    return Reason(Why.DENIED, what=", ".join(calls))


def cost_reason(whose: str, cost_usd: float, limit_usd: float) -> Reason:
    return Reason(Why.COST, whose=whose, cost_usd=round(cost_usd, 6), limit_usd=limit_usd)


def judge_refusal(refusal: Refusal) -> tuple[RunEnd, Reason]:
    """A run that we could not prepare costs the job nothing. A program that could not be executed
    for lack of memory or descriptors is tried a few times: the job's own limit may be too low.
    """
    number, what, is_ours = refusal
    if number == errno.ESRCH:
        return RunEnd.LOST, Reason(Why.WARM_GONE)
    if is_ours:
        return RunEnd.LOST, Reason(Why.CANNOT_PREPARE, what=what)
    end = RunEnd.LOST if number in MACHINE_ERRORS else RunEnd.FAILED
    return end, Reason(Why.NOT_STARTED, errno=number, what=what)


def is_for_want(number: int) -> bool:
    """Whether a start that failed with this errno can be tried again later: the machine lacked
    memory, processes or open files.
    """
    return number in MACHINE_ERRORS


def is_for_memory(number: int) -> bool:
    """Whether a start that failed with this errno shows that memory is short."""
    return number == errno.ENOMEM


def is_own_failure(number: int) -> bool:
    """Whether a run that cannot be prepared is the fault of its job."""
    return number in JOB_ERRORS


def judge_kernel_kill(run: RunView) -> tuple[RunEnd, Reason]:
    """A kill at the run's own `memory_limit` is the run's fault; any other kill is the fleet's."""
    limit = run.job.memory_limit_bytes
    if limit is not None and run.pen.limit_hit:
        return RunEnd.LIMIT_KILL, limit_reason(run, limit)
    return RunEnd.OOM_KILL, Reason(Why.OOM_KILL, peak_bytes=run.pen.peak_bytes)


def limit_reason(run: RunView, limit: int) -> Reason:
    """The kernel drops page cache before it kills, so its own peak is the memory that the run used
    then. The measured peak may be lower: a run can fill its limit between two measurements.
    """
    peak = max(run.pen.peak_bytes, run.pen.charged_bytes if run.pen.kernel_kills else 0)
    return Reason(Why.LIMIT_KILL, limit_bytes=limit, peak_bytes=peak)


def is_live(run: RunView) -> bool:
    """Neither ended nor told to end."""
    return is_phase_live(run.phase)


def is_lingering(run: RunView) -> bool:
    """Processes of the run are alive, or are just being started."""
    return run.refused is None and run.pen.procs > 0


def is_leaving(run: RunView) -> bool:
    """Told to make room, and not yet gone."""
    return run.stop is not None and run.stop.end is RunEnd.PREEMPTED


def next_deadline_s(snapshot: Snapshot, policy: Policy) -> float:
    """The time of the next decision if nothing happens before."""
    times = [
        since + grace
        for run in snapshot.runs
        if (told := told_to_end(run, policy)) is not None and is_lingering(run)
        for since, grace in [told]
    ]
    times += [
        run.started_s + run.uncounted_s + run.job.timeout_s
        for run in snapshot.runs
        if run.job.timeout_s is not None and is_live(run)
    ]
    times += [
        status.not_before_s for status in snapshot.delayed if status.not_before_s > snapshot.at_s
    ]
    return min(times, default=float("inf"))
