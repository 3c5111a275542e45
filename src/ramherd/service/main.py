"""`ramherd up`, from its lock to its exit: everything that the service's loop needs."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ramherd.act.alert_commands import AlertCommands
from ramherd.act.environments import HerdEnvironments, choose_passed
from ramherd.act.executor import Executor
from ramherd.act.keeper_client import Adoption, KeeperClient, start_keeper
from ramherd.act.pens.selection import POLLED, make_fleet
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import StoreError
from ramherd.core.model import ProcId
from ramherd.jobs.reader import Defaults
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.service.alerts import Alerts
from ramherd.service.api_process import ApiProcess
from ramherd.service.census_watch import CensusWatch
from ramherd.service.service_agents import ServiceAgents
from ramherd.service.service_counters import ServiceCounters
from ramherd.service.service_lock import ServiceLock
from ramherd.service.service_loop import Halt, Service
from ramherd.service.service_signals import catching_service_signals
from ramherd.service.status_publisher import StatusPublisher
from ramherd.service.takeover import Adopted, Takeover, adoption_paths, describe, first_grant
from ramherd.show.view import Display
from ramherd.store.herds import SERVICE, SERVICE_OWNER, add_pen, drop_pen, set_pen
from ramherd.store.inputs import remove_unused_inputs
from ramherd.store.ledger import Ledger
from ramherd.store.owner import OwnerLock
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_environment_file
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.disk_watch import open_store_or_release
from ramherd.supervisor.herd_counters import HerdCounters
from ramherd.supervisor.job_states import AgentParts
from ramherd.supervisor.run_herd import (
    Rules,
    make_loop,
    prepare_store,
    raise_file_limit,
    with_restored_store,
)
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_boot_id
from ramherd.system.signals import Signals

# At the end, a store that cannot be written gets this long.
LAST_WRITES_S = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    load_rules: Callable[[], Rules]
    defaults: Defaults = field(default_factory=Defaults)
    port: int | None = None
    halt: Halt = Halt.STOP


@dataclass
class Place:
    state: Path
    runtime: Path
    trees: Trees
    store: Store
    writes: WriteBuffer
    nofile: int


def serve(options: Options, display: Display) -> None:
    """Runs the service until it is told to end, then removes all but the runs that are to go on."""
    rules, nofile = raise_file_limit(options.load_rules())
    state, runtime = state_dir(), runtime_dir()
    with ExitStack() as stack:
        lock = stack.enter_context(closing(ServiceLock(state, runtime)))
        store = stack.enter_context(closing(open_store_or_release(state)))
        trees = read_trees()
        with_restored_store(
            store,
            lambda: prepare_store(
                store, state, runtime, rules.policy.log_total_bytes, is_service=True
            ),
        )
        owner = stack.enter_context(closing(OwnerLock(runtime)))
        signals = stack.enter_context(catching_service_signals())
        ledger = stack.enter_context(closing(Ledger(runtime / "ledger.db", runtime, owner.owner)))
        queue, agents = ServiceQueue(store), AgentParts()
        environments = HerdEnvironments(
            state, partial(read_environment_file, store), choose_passed(rules.pass_env)
        )
        service_agents = ServiceAgents(
            store, state, rules.policy, environments, rules.reuse, agents
        )  # fmt: skip
        takeover = Takeover(
            store, queue, state, runtime, trees, rules.policy, service_agents
        )  # fmt: skip
        adopted = with_restored_store(store, takeover.run)
        remove_unused_inputs(store, state)
        for line in describe(adopted):
            print(f"ramherd: {line}", file=sys.stderr)
        writes = WriteBuffer(store)
        stack.callback(write_last, writes, lambda: signals.ends > 1)
        place = Place(state, runtime, trees, store, writes, nofile)
        counters = ServiceCounters()
        executor = stack.enter_context(
            service_executor(place, rules, adopted, counters.totals, options.halt)
        )
        executor.environments = environments
        api = ApiProcess(state, runtime, options.defaults, options.port)
        stack.callback(api.close)
        commands = AlertCommands(rules.on_alert)
        stack.callback(commands.close)
        watch = CensusWatch(rules.watch_every_s, rules.on_alert)
        stack.callback(watch.close)
        publisher = StatusPublisher(runtime / "status.json")
        stack.callback(publisher.remove)
        loop = make_loop(
            SERVICE, queue, rules, display, writes=writes, ledger=ledger, executor=executor,
            trees=place.trees, signals=Signals(signals.fd), counters=counters.totals, agents=agents,
            owner=SERVICE_OWNER, fleet_id=adopted.fleet_id,
            # Without the lock `api.sock` is another service's: the files after it are not made.
            runtime=RuntimeFiles(runtime, [
                owner.restore, ledger.restore, lock.restore, publisher.restore, api.restore,
            ]),
        )  # fmt: skip
        service = Service(
            loop, queue, signals, counters, api, Alerts(commands), watch, service_agents,
            options.load_rules, publisher, state, halt=options.halt,
            remove_unused=lambda: remove_unused(place),
        )  # fmt: skip
        adopt_runs(executor, adopted, rules.grants.quantum_bytes)
        queue.refill()
        api.start()
        service.run()


def write_last(writes: WriteBuffer, is_told_again: Callable[[], bool]) -> None:
    """The next service reads writes that failed here from the files of the runs."""
    if writes.commit_last(0.0, lambda: True):
        print(
            f"ramherd: {writes.trouble}: trying for {LAST_WRITES_S:.0f} s to write the results",
            file=sys.stderr,
        )
    if why := writes.commit_last(LAST_WRITES_S, is_told_again):
        print(f"ramherd: the results of the last runs are not in the store: {why}", file=sys.stderr)


def adopt_runs(executor: Executor, adopted: Adopted, quantum_bytes: int) -> None:
    """The keeper drops runs that are not open in the store: these were recorded as ended."""
    for run in adopted.runs:
        executor.adopt(run, first_grant(run, quantum_bytes))
    for known in set(executor.keeper.known) - set(executor.runs):
        executor.keeper.send("forget", run=known)


def remove_unused(place: Place) -> None:
    """Removes inputs that no job needs. Too slow for the loop, so it opens its own store."""

    def remove_apart() -> None:
        # A locked or lost store, or a full disk: tried again in ten minutes.
        with suppress(StoreError, OSError), closing(place.store.open_another()) as store:
            remove_unused_inputs(store, place.state)

    threading.Thread(target=remove_apart, daemon=True).start()


@contextmanager
def service_executor(
    place: Place, rules: Rules, adopted: Adopted, counters: HerdCounters, halt: Halt
) -> Iterator[Executor]:
    """Pens and a keeper: the existing ones, or new ones. They are removed afterwards, unless they
    are to be left; a service that fails also leaves them, for the next.
    """
    fleet = adopted.fleet
    is_new = fleet is None
    if fleet is None:
        adopted.fleet_id = new_id()
        fleet, why_weaker = make_fleet(rules.pen, place.trees, adopted.fleet_id)
        if why_weaker:
            print(f"ramherd: {POLLED}", file=sys.stderr)
    record = {**fleet.record(), "boot_id": read_boot_id()}
    if is_new:
        place.writes.write_now(add_pen, adopted.fleet_id, SERVICE, "", record)

    def record_keeper(keeper: ProcId) -> None:
        """Recorded so that the next service can end the keeper if it does not answer."""
        place.writes.add(set_pen, adopted.fleet_id, {**record, "keeper": keeper})

    adoption = Adoption(adoption_paths(place.state, place.runtime, adopted.fleet_id))
    executor = Executor(
        fleet,
        keeper_source(place, rules, adopted.keeper, adoption, record_keeper),
        place.state / "runs",
        rules.policy,
        rules.grants,
    )
    yield executor
    if halt is Halt.LEAVE:
        executor.enforcer.close()
        executor.keeper.leave()
        return
    for cleaned in executor.shut_down():
        counters.residue_bytes += cleaned.residue_bytes
        if cleaned.removed:
            place.writes.add(drop_pen, cleaned.run)
    for path in adoption.paths:
        path.unlink(missing_ok=True)
    if fleet.remove():
        place.writes.add(drop_pen, adopted.fleet_id)


def keeper_source(
    place: Place,
    rules: Rules,
    adopted: KeeperClient | None,
    adoption: Adoption,
    record_keeper: Callable[[ProcId], None],
) -> Callable[[], KeeperClient]:
    """The adopted keeper first; a new one whenever the last one is gone."""
    links = [adopted] if adopted is not None else []

    def next_keeper() -> KeeperClient:
        if links:
            return links.pop()
        errors = place.state / "keeper.err"
        keeper = start_keeper(rules.policy.grace_s, errors, place.nofile, adoption)
        record_keeper(keeper.proc_id)
        return keeper

    return next_keeper
