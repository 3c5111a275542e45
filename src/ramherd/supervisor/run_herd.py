"""One herd, from its jobs to its summary: makes the parts of a supervisor, and ends all of them."""

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ramherd.act.environments import choose_passed, one_environment
from ramherd.act.executor import Executor
from ramherd.act.keeper_client import start_keeper
from ramherd.act.pens.selection import POLLED, make_fleet
from ramherd.act.recovery import recover
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import StoreDamaged, StoreError
from ramherd.core.model import Event, Job, JobState, Why
from ramherd.core.policies import (
    GrantPolicy,
    Policy,
    RecyclePolicy,
    ReusePolicy,
    StrayPolicy,
)
from ramherd.core.units import MIB, count, format_size
from ramherd.decide.job_state import first_status
from ramherd.decide.pruning import PruneRule
from ramherd.decide.ramp import Ramp, begin_ramp
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.measure.machine import read_machine
from ramherd.measure.pressure import PressureGauge
from ramherd.show.view import Display
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.herds import add_herd, add_pen, drop_pen, end_herd, read_answers
from ramherd.store.inputs import move_environments_out, remove_unused_inputs, writing_inputs
from ramherd.store.job_numbers import read_numbers
from ramherd.store.ledger import Ledger
from ramherd.store.owner import Owner, OwnerLock
from ramherd.store.prices import read_prices
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_unfinished_of_dead
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.usage_windows import read_windows
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.disk_watch import DiskWatch, open_store_or_release
from ramherd.supervisor.estimates import Classes
from ramherd.supervisor.event_log import EventLog, Hooks
from ramherd.supervisor.herd_counters import HerdCounters, JobCounters
from ramherd.supervisor.job_states import AgentParts, JobStates
from ramherd.supervisor.loop import Loop
from ramherd.supervisor.memory_governor import LeaseHolder, MemoryGovernor
from ramherd.supervisor.on_done_queue import OnDoneQueue, run_herd_command
from ramherd.supervisor.prune import prune
from ramherd.supervisor.runs import Runs
from ramherd.supervisor.start_gate import StartGate
from ramherd.supervisor.start_waits import StartWaits
from ramherd.supervisor.worktree_queue import WorktreeQueue
from ramherd.system.file_limit import check_file_limit, explain_file_limit
from ramherd.system.procfs import read_peak_rss_bytes
from ramherd.system.signals import Signals, catching_signals
from ramherd.system.unix_socket import is_listening

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns

T = TypeVar("T")

OK, FAILED, NO_ROOM, INTERRUPTED = 0, 1, 3, 130
# The kernel takes a moment to free the memory of the last runs: the end waits at most this long,
# until at most this many bytes less than before are available.
SETTLE_S = 1.0
SETTLE_BYTES = 16 * MIB
# Six files of the pen and an event in the supervisor; pipes and logs in the keeper.
DESCRIPTORS_A_RUN = 8
OWN_DESCRIPTORS = 64
# Memory limits how many runs there are: a limit of this many or more is not worth a line.
MANY_RUNS = 100
# With fewer descriptors not even one run starts.
LEAST_DESCRIPTORS = 80
# A store that cannot be written gets this long for the results of a herd; after Ctrl-C, a second.
LAST_WRITES_S = 10.0
LAST_WRITES_INTERRUPTED_S = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_code: int
    summary: dict[str, Any]
    missing_bytes: int

    @property
    def is_interrupted(self) -> bool:
        """Whether `ramherd run --resume` would continue the herd."""
        if self.exit_code == INTERRUPTED:
            return bool(self.summary["cancelled"])
        ends = ((one["state"], one["reason"]["why"]) for one in self.summary["results"])
        return (JobState.CANCELLED, Why.NO_ACCESS) in ends


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a herd, as the numbers that each layer compares with."""

    policy: Policy = field(default_factory=Policy)
    grants: GrantPolicy = field(default_factory=GrantPolicy)
    recycling: RecyclePolicy = field(default_factory=RecyclePolicy)
    reuse: ReusePolicy = field(default_factory=ReusePolicy)
    pen: str = "auto"
    ramp: int | None = None
    on_alert: str | None = None
    on_done: str | None = None
    # How often the service looks at all agents of the machine; 0 is never.
    watch_every_s: float = StrayPolicy().watch_every_s
    time_scale: float = 1.0
    size_scale: float = 1.0
    # The cost limit for all agents of the herd together.
    max_cost_usd: float | None = None
    # Agents may run in less memory than they are known to need.
    force: bool = False
    # Patterns of the variables that runs inherit; None: all.
    pass_env: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class HerdParts:
    """The parts that the loop of a herd works on, once the store records the herd as ours."""

    queue: HerdQueue
    counters: HerdCounters
    agents: AgentParts
    # Jobs that ended earlier, and whose worktrees are not finished.
    unfinished: Sequence[Job] = ()


# Records the herd in the store, with its owner.
BeginHerd = Callable[[Store, Owner], HerdParts]


def run_herd(
    herd: str, jobs: Sequence[Job], rules: Rules, display: Display,
    settings: Mapping[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """Runs all jobs; no process of theirs is left when this returns or raises. `settings` are
    stored for the process that continues the herd after an interruption.
    """
    jobs = with_accounts(with_worktrees(jobs), rules)
    agents = AgentParts(prepare_agents(jobs, rules))
    if agents.runs is not None:
        agents.runs.start_gateway(jobs)
    now_s = time.monotonic()

    def begin(store: Store, owner: Owner) -> HerdParts:
        with writing_inputs(state_dir(), jobs, None) as inputs:
            queue = HerdQueue(first_status(job, now_s) for job in inputs.jobs)
            with_restored_store(
                store,
                lambda: add_herd(
                    store, herd, owner, queue, max_cost_usd=rules.max_cost_usd,
                    env=inputs.environment, settings={**(settings or {}), **kept_settings(rules)},
                ),
            )  # fmt: skip
        counters = {status.job.id: JobCounters(status.reason) for status in queue}
        return HerdParts(queue, HerdCounters(counters), agents)

    return run_claimed(herd, begin, rules, display)


def kept_settings(rules: Rules) -> dict[str, Any]:
    """Settings that are stored with the herd, wherever they were set."""
    return {} if rules.on_done is None else {"on_done": rules.on_done}


def run_claimed(herd: str, begin: BeginHerd, rules: Rules, display: Display) -> Outcome:
    """Runs the jobs of a herd that `begin` claims."""
    rules, nofile = raise_file_limit(rules)
    state, runtime, trees = state_dir(), runtime_dir(), read_trees()
    with (
        closing(open_store_or_release(state)) as store,
        closing(OwnerLock(runtime)) as lock,
        ExitStack() as stack,
    ):
        with_restored_store(
            store, lambda: prepare_store(store, state, runtime, rules.policy.log_total_bytes)
        )
        parts = begin(store, lock.owner)
        queue, counters, agents = parts.queue, parts.counters, parts.agents
        # After `begin`: the worktrees of jobs that continue here are not finished.
        unfinished = with_restored_store(store, lambda: read_unfinished_of_dead(store))
        # Before this line nothing has started, and Ctrl-C ends ramherd at once.
        signals = stack.enter_context(catching_signals())
        writes = WriteBuffer(store)
        with (
            closing(Ledger(runtime / "ledger.db", runtime, lock.owner)) as ledger,
            herd_executor(
                herd, lock.owner.id, trees=trees, rules=rules, writes=writes, state=state,
                counters=counters, nofile=nofile,
            ) as executor,
        ):  # fmt: skip
            loop = make_loop(
                herd, queue, rules, display, writes=writes, ledger=ledger, executor=executor,
                trees=trees, signals=signals, counters=counters, agents=agents,
                runtime=RuntimeFiles(runtime, [lock.restore, ledger.restore]),
                owner=lock.owner, fleet_id=lock.owner.id, hooks=make_hooks(rules, stack),
            )  # fmt: skip
            add_warm_reuse(loop, rules.reuse)
            loop.worktrees.add([*parts.unfinished, *unfinished])
            loop.run()
            loop.restore_store()
            costs = measure_costs(executor)
        counters.available_after = counters.available_before
        if any(job.runs for job in counters.jobs.values()):
            counters.available_after = wait_for_memory(trees, counters.available_before)
        answers = read_stored(read_answers, store, herd) if agents.runs is not None else {}
        numbers = read_stored(read_numbers, store, herd)
        results = counters.as_json(herd, queue, answers, numbers)
        results |= describe_limits(agents, queue)
        summary = {**results, "supervisor": costs, **describe_loop(loop)}
        writes.add(end_herd, herd, summary)
        if why := write_last(writes, signals):
            summary["store_error"] = why
        with suppress(StoreError):  # the next start removes them
            remove_unused_inputs(store, state)
        code = choose_exit_code(signals.count, counters, summary, gave_up=loop.runs.given_up)
        if rules.on_done is not None:
            start_on_done(store, herd, choose_passed(rules.pass_env), code, signals)
    return Outcome(code, summary, counters.missing_bytes)


def make_hooks(rules: Rules, stack: ExitStack) -> Hooks:
    """Starts `on_alert` for each alert; the command ends with ramherd."""
    if rules.on_alert is None:
        return Hooks()
    from ramherd.act.alert_commands import AlertCommands  # noqa: PLC0415 - subprocess

    commands = AlertCommands(rules.on_alert)
    stack.callback(commands.close)

    def start(event: Event) -> None:
        if event.kind == "alert":
            commands.start(event)

    return Hooks(event=start)


def start_on_done(
    store: Store, herd: str, env: Mapping[str, str], code: int, signals: Signals
) -> None:
    """Runs the command of the herd. The herd is over, however the command ends."""
    before = signals.count
    try:
        why = run_herd_command(
            store, state_dir(), herd, env,
            exit_code=code, is_interrupted=lambda: signals.count > before,
        )  # fmt: skip
    except (OSError, StoreError) as error:
        why = f"cannot be started: {error}"
    if why:
        print(f"ramherd: the on_done command of the herd failed: {why}", file=sys.stderr)


def read_stored(
    read: Callable[[Store, str], dict[str, T]], store: Store, herd: str
) -> dict[str, T]:
    """If the store cannot be read, the beginning of each answer is shown, and no numbers."""
    try:
        return read(store, herd)
    except StoreError:
        return {}


def prepare_store(
    store: Store, state: Path, runtime: Path, log_total_bytes: int, *, is_service: bool = False
) -> None:
    """Clears the remains of dead ramherds, and makes space for new logs. A running service has
    moved environments itself; a starting service removes inputs when it has found the runs that go
    on.
    """
    if cleared := recover(store, runtime, state / "runs"):
        print(f"ramherd: cleaned up after {count(cleared, 'dead ramherd')}", file=sys.stderr)
    if is_service or not is_listening(runtime / "api.sock"):
        move_environments_out(store, state)
    if not is_service:
        remove_unused_inputs(store, state)
    prune_to_total(store, state / "runs", log_total_bytes)


def with_restored_store(store: Store, act: Callable[[], T]) -> T:
    """Calls `act`, and if the store turns out to be damaged, restores it and calls `act` again."""
    try:
        return act()
    except StoreDamaged:
        store.rollback()
        store.check()
    for what in store.pop_restored():
        print(f"ramherd: {what}", file=sys.stderr)
    return act()


def write_last(writes: WriteBuffer, signals: Signals) -> str:
    """Why the results are not in the store, or "". The results are shown in any case."""
    if writes.commit_last(0.0, lambda: True):
        print(f"ramherd: {writes.trouble}: trying to write the results", file=sys.stderr)
    before = signals.count
    for_s = LAST_WRITES_INTERRUPTED_S if before else LAST_WRITES_S
    return writes.commit_last(for_s, lambda: signals.count > before)


def describe_loop(loop: Loop) -> dict[str, Any]:
    """What the loop adds to the summary of a herd."""
    return {
        "budget_bytes": loop.memory.lease.most_possible_bytes,
        "pen": loop.executor.fleet.kind,
        **describe_holds(loop.counters.holds),
        **describe_ramp(loop.memory.ramp),
    }


def make_loop(
    herd: str, queue: HerdQueue | ServiceQueue, rules: Rules, display: Display, *,
    writes: WriteBuffer, ledger: Ledger, executor: Executor, trees: Trees, signals: Signals,
    counters: HerdCounters, agents: AgentParts, runtime: RuntimeFiles,
    owner: Owner, fleet_id: str, hooks: Hooks | None = None,
) -> Loop:  # fmt: skip
    """The loop with its parts."""
    events = EventLog(herd, writes, display, hooks or Hooks())
    jobs, gate = JobStates(queue, events, counters, agents), StartGate(events)
    classes = Classes(rules.time_scale, rules.size_scale)
    classes.read(writes.store, (status.job for status in queue))
    if agents.runs is not None:
        agents.runs.prices.load(read_prices(writes.store))
    memory = MemoryGovernor(
        executor, jobs, agents, gate, LeaseHolder(ledger, rules.policy, rules.grants), classes,
        PressureGauge(trees), rules.policy, rules.grants, rules.recycling,
        ramp=begin_ramp(rules.ramp) if rules.ramp is not None else None,
        time_scale=rules.time_scale,
    )  # fmt: skip
    if agents.runs is not None:
        agents.runs.limits.load(read_windows(writes.store), is_new_herd=not queue.is_lasting)
    runs = Runs(executor, memory, jobs, agents, events, gate, counters)
    disk = DiskWatch(
        executor.runs_dir.parent, rules.policy.log_total_bytes, executor, events, gate
    )  # fmt: skip
    return Loop(
        queue, executor, memory, runs, agents, events, gate, StartWaits(events), counters,
        signals, trees, runtime,
        owner, fleet_id, disk, WorktreeQueue(executor, jobs, events, counters),
        OnDoneQueue(executor, jobs, events),
    )  # fmt: skip


def prepare_agents(
    jobs: Sequence[Job], rules: Rules, *,
    said: Callable[[str], Mapping[str, Any] | None] | None = None, spent_usd: float = 0.0,
) -> "AgentRuns | None":  # fmt: skip
    """None if no job has an agent: then the modules for agents are not loaded. `said` reads the
    reports of earlier agents, and `spent_usd` is their cost.
    """
    if all(job.brief is None for job in jobs):
        return None
    from ramherd.supervisor.agent_runs import make_agent_runs  # noqa: PLC0415

    return make_agent_runs(
        jobs, rules.policy, max_cost_usd=rules.max_cost_usd, force=rules.force,
        said=said, spent_usd=spent_usd,
    )  # fmt: skip


def add_warm_reuse(loop: Loop, policy: ReusePolicy, *, is_lasting: bool = False) -> None:
    """Once there are agents. `is_lasting`: more jobs may come after all known jobs have ended."""
    agents = loop.agents
    if agents.runs is None:
        return
    from ramherd.supervisor.warm_reuse import WarmReuse  # noqa: PLC0415 - with the first agent

    agents.warm = WarmReuse(loop.executor, loop.memory, agents.runs, policy, is_lasting)


def with_worktrees(jobs: Sequence[Job]) -> Sequence[Job]:
    """Jobs whose agents would change the same repository get their own worktrees."""
    if all(job.brief is None for job in jobs):
        return jobs
    from ramherd.act.worktrees.making import isolate  # noqa: PLC0415 - subprocess is 1 MB

    return isolate(jobs, state_dir() / "worktrees")


def with_accounts(jobs: Sequence[Job], rules: Rules) -> Sequence[Job]:
    """Adds to jobs with an agent the account that their API counts them by."""
    if all(job.brief is None for job in jobs):
        return jobs
    from ramherd.agents import accounts  # noqa: PLC0415 - for agents only

    return accounts.with_accounts(jobs, choose_passed(rules.pass_env))


def describe_limits(agents: AgentParts, queue: HerdQueue) -> dict[str, Any]:
    """Usage limits that outlast the herd: its jobs were cancelled while they waited."""
    if agents.runs is None:
        return {}
    from ramherd.decide.usage_limits import quota_of  # noqa: PLC0415 - for agents only

    undone = (one.job.brief for one in queue if one.state is not JobState.DONE)
    waits = agents.runs.limits.find_waits({quota_of(brief) for brief in undone if brief})
    return {"limits": [reason.as_json() for reason in waits]} if waits else {}


def describe_ramp(ramp: Ramp | None) -> dict[str, Any]:
    if ramp is None:
        return {}
    trouble = ramp.trouble.as_json() if ramp.trouble is not None else None
    return {"ramp": {"reached": ramp.allowed, "clean": ramp.clean, "trouble": trouble}}


@contextmanager
def herd_executor(
    herd: str, owner: str, *,
    trees: Trees, rules: Rules, writes: WriteBuffer, state: Path, counters: HerdCounters,
    nofile: int,
) -> Iterator[Executor]:  # fmt: skip
    """A fleet and a keeper. The store records the fleet before it has a process; both end here."""
    fleet, why_weaker = make_fleet(rules.pen, trees, owner)
    if why_weaker:
        print(f"ramherd: {POLLED}", file=sys.stderr)
    writes.write_now(add_pen, owner, herd, "", fleet.record())
    executor = Executor(
        fleet,
        lambda: start_keeper(rules.policy.grace_s, state / "keeper.err", nofile),
        state / "runs",
        rules.policy,
        rules.grants,
    )
    executor.environments = one_environment(choose_passed(rules.pass_env))
    try:
        yield executor
    finally:
        for cleaned in executor.shut_down():
            counters.residue_bytes += cleaned.residue_bytes
            if cleaned.removed:
                writes.add(drop_pen, cleaned.run)
        # A fleet that could not be removed stays on record, and the next start tries again.
        if fleet.remove():
            writes.add(drop_pen, owner)
        else:
            print(f"ramherd: cannot remove {' '.join(fleet.dirs())}", file=sys.stderr)
        writes.commit_last(0.0, lambda: True)


def prune_to_total(store: Store, runs_dir: Path, most_bytes: int) -> None:
    pruned = prune(store, runs_dir, PruneRule(most_bytes))
    if pruned.runs:
        oldest = "oldest run" if pruned.runs == 1 else f"{pruned.runs} oldest runs"
        print(
            f"ramherd: removed the output of the {oldest} "
            f"({format_size(pruned.freed_bytes)}): log_total is {format_size(most_bytes)}",
            file=sys.stderr,
        )


def measure_costs(executor: Executor) -> dict[str, Any]:
    times = os.times()
    return {
        "rss_peak_bytes": read_peak_rss_bytes(os.getpid()),
        "cpu_s": round(times.user + times.system, 3),
        "keeper_rss_peak_bytes": read_peak_rss_bytes(executor.keeper.proc_id.pid),
    }


def describe_holds(holds: Sequence[float]) -> dict[str, Any]:
    """How many times runs were held at their grants, and for how long."""
    ordered = sorted(holds)
    times = {
        f"{name}_s": round(ordered[int(share * (len(ordered) - 1))], 5) if ordered else 0.0
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }
    return {"holds": {"count": len(ordered), **times}}


def wait_for_memory(trees: Trees, before_bytes: int) -> int:
    """The memory that the machine has available after the runs' memory was freed."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        available = read_machine(trees).available_bytes
        if available >= before_bytes - SETTLE_BYTES or time.monotonic() >= deadline:
            return available
        time.sleep(0.05)


def choose_exit_code(
    interrupts: int, counters: HerdCounters, summary: dict[str, Any], *, gave_up: bool
) -> int:
    if interrupts:
        return INTERRUPTED
    if summary["done"] == summary["jobs"]:
        return OK
    # With `--no-wait` a job had to wait, or no job could be started: the machine is too full.
    nothing_ran = all(job.runs == 0 for job in counters.jobs.values())
    return NO_ROOM if gave_up or (counters.no_room and nothing_ran) else FAILED


def raise_file_limit(rules: Rules) -> tuple[Rules, int]:
    """Raises the limit as far as possible, and allows no more runs than there are descriptors for;
    the user gets a line about that. Also returns the user's own limit, which runs get.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    check_file_limit(hard, LEAST_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = max((hard - OWN_DESCRIPTORS) // DESCRIPTORS_A_RUN, 1)
    given = rules.grants.max_parallel
    if given is None or given > most:
        if given is not None or most < MANY_RUNS:
            print(f"ramherd: {explain_file_limit(most, hard)}", file=sys.stderr)
        rules = replace(rules, grants=rules.grants._replace(max_parallel=most))
    return rules, soft
