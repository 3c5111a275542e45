"""A machine that is made up: pens that hold what they are told, a keeper that answers at once.

Supervisor, executor, store and decisions are the real ones. Time goes on only in `wait`.
"""

import errno
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ramherd.act.executor import Executor
from ramherd.act.keeper_client import NEED_RECORD, KeeperClient
from ramherd.act.pens import SpawnPart
from ramherd.act.pens.selection import Fleet
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.model import Event, Job, Machine, PenReading, ProcId
from ramherd.core.policies import GrantPolicy, Policy
from ramherd.core.units import GIB, MIB
from ramherd.decide.job_state import first_status
from ramherd.measure.cgroups import Trees
from ramherd.show.view import Display, View
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.herds import add_herd
from ramherd.store.ledger import Ledger
from ramherd.store.owner import Owner
from ramherd.store.sqlite import SqliteStore
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.herd_counters import HerdCounters, JobCounters
from ramherd.supervisor.job_states import AgentParts
from ramherd.supervisor.loop import Loop
from ramherd.supervisor.memory_governor import MemoryGovernor
from ramherd.supervisor.run_herd import Rules, make_loop
from ramherd.system.signals import Signals
from support.make import HERD, policy

MOST_STEPS = 2000
CLOSE, EXIT_S = "close", 2.0
OWNER = Owner("O", "b", ProcId(1, 1))


@dataclass
class FakePen:
    """Holds `used` from its start until its end, or grows on to `full` by `rate` a second, as
    far as the backstop of its grant; ends by itself after so long at work.
    """

    run: str
    used: int
    lasts_s: float
    now: Callable[[], float] = lambda: 0.0
    rate: float = 0.0
    full: int = 0
    cache: int = 0
    worked_s: float = 0.0
    alive: bool = False
    frozen: bool = False
    ended: tuple[int | None, int | None] | None = None
    unkillable: bool = False
    mark_bytes: int = 0
    most_bytes: int = 0
    grants: list[int] = field(default_factory=list)
    trims: list[int] = field(default_factory=list)
    reclaims: list[int] = field(default_factory=list)
    _at_s: float = 0.0

    def begin(self) -> None:
        self.alive, self._at_s = True, self.now()

    def work(self) -> None:
        """What it did since it was last looked at."""
        past_s, self._at_s = self.now() - self._at_s, self.now()
        if self.alive and not self.frozen:
            self.worked_s += past_s
            wish = max(min(self.used + int(self.rate * past_s), self.full), self.used)
            self.used = min(wish, max(self.most_bytes, self.used))
            if self.worked_s >= self.lasts_s:
                self.end(0, None)

    def end(self, code: int | None, number: int | None) -> None:
        if self.alive and not self.unkillable:
            self.alive, self.ended = False, (code, number)

    def spawn_part(self) -> SpawnPart:
        return {"join": [], "on_loss": {"thaw": [], "kill": []}, "dirs": []}

    def set_first(self, first: ProcId) -> None: ...
    def set_empty(self) -> None: ...

    def read(self) -> PenReading:
        self.work()
        used = self.used if self.alive else 0
        return PenReading(used, self.used, int(self.alive), cache_bytes=self.cache)

    def pids(self) -> list[int]:
        return []

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        self.work()
        self.mark_bytes, self.most_bytes = mark_bytes, most_bytes
        self.grants.append(mark_bytes)

    def grant_fd(self) -> int | None:
        return None

    def clear_event(self) -> None: ...

    arms_slowly = False

    def arm(self) -> int | None:
        return None

    def set_event(self, event: int) -> None: ...

    def trim(self, to_bytes: int) -> None:
        self.trims.append(to_bytes)

    can_reclaim = True

    def reclaim(self, most_bytes: int) -> None:
        self.reclaims.append(most_bytes)

    def signal(self, number: int) -> int:
        alive = self.alive
        if number == signal.SIGTERM:
            self.end(None, signal.SIGTERM)
        return int(alive)

    def freeze(self) -> None:
        self.work()
        self.frozen = True

    def thaw(self) -> None:
        self.work()
        self.frozen = False

    def kill(self) -> None:
        self.end(None, signal.SIGKILL)

    def residue_bytes(self) -> int:
        return 0

    def remove(self, wait_s: float = 2.0) -> bool:  # noqa: ARG002
        return True

    def record(self) -> dict[str, Any]:
        return {"kind": "fake"}


@dataclass
class FakeFleet:
    """`uses` says what the n-th run holds; `refuse_until_s` is how long no pen can be made."""

    now: Callable[[], float]
    uses: Callable[[int], int] = lambda _n: MIB
    refuse_until_s: float = 0.0
    # The n-th run grows to `full` by `rate` a second.
    grows: Callable[[int], tuple[float, int]] = lambda _n: (0.0, 0)
    lasts_s: float = EXIT_S
    kind: str = "fake"
    kernel_limits: bool = True
    soon_s: float = 0.01
    pens: dict[str, FakePen] = field(default_factory=dict)

    def add(self, run: str, limit_bytes: int | None) -> FakePen:  # noqa: ARG002
        if self.now() < self.refuse_until_s:
            raise OSError(errno.ENOMEM, "Cannot allocate memory", "/cgroup")
        number = len(self.pens) + 1
        rate, full = self.grows(number)
        pen = FakePen(run, self.uses(number), self.lasts_s, self.now, rate, full)
        self.pens[run] = pen
        return pen

    def scan(self) -> None: ...

    def read(self) -> PenReading:
        readings = [pen.read() for pen in self.pens.values()]
        return PenReading(sum(one.used_bytes for one in readings))

    def set_limit(self, limit_bytes: int) -> None: ...

    def set_keeper(self, keeper: ProcId) -> None: ...

    def dirs(self) -> list[str]:
        return []

    def remove(self) -> bool:
        return True

    def record(self) -> dict[str, Any]:
        return {"kind": "fake"}


@dataclass
class FakeLink:
    """Starts what it is asked to, and tells how it ended."""

    fleet: FakeFleet
    has_more_to_send: bool = False
    is_adoptable: bool = False
    takes_files: bool = True
    # Stopped it neither reads nor answers; dead it is gone.
    is_stopped: bool = False
    is_dead: bool = False
    has_answered: bool = True
    fd: int = -1
    proc_id: ProcId = field(default_factory=lambda: ProcId(1, 1))
    asked: list[tuple[str, str]] = field(default_factory=list)
    unrecorded: list[tuple[str, str]] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    spawned: list[dict[str, Any]] = field(default_factory=list)

    def send(self, do: str, **values: Any) -> None:
        if do == "spawn":
            self.spawned.append(values)
        held = do in NEED_RECORD
        (self.unrecorded if held else self.asked).append((do, values.get("run", "")))

    def release(self) -> None:
        self.asked += self.unrecorded
        self.unrecorded = []

    def withdraw(self, run: str) -> bool:
        is_found = ("spawn", run) in self.unrecorded
        self.unrecorded = [held for held in self.unrecorded if held[1] != run]
        return is_found

    def flush(self) -> None:
        if self.is_stopped or self.is_dead:
            return
        for do, run in self.asked:
            if do == "spawn":
                self.fleet.pens[run].begin()
                self.tell("started", run, pid=1, start_ticks=1)
            elif do == CLOSE:
                self.tell("closed", run)
            elif do == "ping":
                self.tell("pong", "")
        self.asked = []

    def tell(self, did: str, run: str, **values: Any) -> None:
        self.told.append({"did": did, "run": run, **values})

    def receive(self) -> list[dict[str, Any]] | None:
        if self.is_stopped or self.is_dead:
            return None if self.is_dead else []
        for pen in self.fleet.pens.values():
            pen.work()
            if pen.ended is not None:
                code, number = pen.ended
                how = {"code": code, "signal": number, "largest_bytes": pen.used}
                self.tell("exited", pen.run, **how, closed=False)
                pen.ended = None
        told, self.told = self.told, []
        return told

    def fileno(self) -> int:
        return self.fd

    def close(self) -> None: ...

    def kill(self) -> None: ...

    def read_failure(self) -> str:
        return "MemoryError"


@dataclass
class FakeShow:
    events: list[tuple[str, str]] = field(default_factory=list)
    full: list[Event] = field(default_factory=list)

    def event(self, event: Event, name: str) -> None:
        self.events.append((event.kind, name))
        self.full.append(event)

    def update(self, view: Callable[[], View]) -> None:
        view()


@dataclass
class FakeHerd:
    """The loop of a herd on that machine. `interrupt_at_s` is when Ctrl-C is pressed, once or
    twice; `meanwhile` is what others do.
    """

    loop: Loop
    at_s: float = 0.0
    steps: int = 0
    interrupt_at_s: Sequence[float] = ()
    meanwhile: Callable[[float], None] = lambda _s: None

    def __post_init__(self) -> None:
        self.loop.clock = lambda: self.at_s
        self.loop.wait = self.wait  # type: ignore[method-assign]

    def wait(self, timeout_s: float) -> None:
        """A hundredth of a second at least, or nothing would ever happen."""
        self.at_s += max(timeout_s, 0.01)
        self.steps += 1
        self.meanwhile(self.at_s)
        self.loop.signals.count = sum(at_s <= self.at_s for at_s in self.interrupt_at_s)
        assert self.steps < MOST_STEPS, "the herd does not come to an end"

    @property
    def executor(self) -> Executor:
        return self.loop.executor

    @property
    def memory(self) -> MemoryGovernor:
        return self.loop.memory

    @property
    def counters(self) -> HerdCounters:
        return self.loop.counters

    @property
    def queue(self) -> HerdQueue:
        assert isinstance(self.loop.queue, HerdQueue)
        return self.loop.queue


def make_herd(
    store: SqliteStore, ledger: Ledger, runs_dir: Path, jobs: Sequence[Job], rules: Rules
) -> tuple[FakeHerd, FakeFleet, FakeShow]:  # fmt: skip
    queue = HerdQueue(first_status(job, 0.0) for job in jobs)
    add_herd(store, HERD, OWNER, queue)
    fleet, show = FakeFleet(lambda: herd.at_s), FakeShow()
    executor = Executor(
        cast("Fleet", fleet),
        lambda: cast("KeeperClient", FakeLink(fleet)),
        runs_dir,
        rules.policy,
        rules.grants,
    )
    counters = HerdCounters({one.job.id: JobCounters(one.reason) for one in queue})
    loop = make_loop(
        HERD, queue, rules, Display(show.event, show.update), writes=WriteBuffer(store),
        ledger=ledger, executor=executor, trees=Trees({}, None), signals=Signals(-1),
        counters=counters, agents=AgentParts(),
        owner=OWNER, fleet_id=OWNER.id, runtime=RuntimeFiles(runs_dir, [], lambda: runs_dir),
    )  # fmt: skip
    # The load of this machine is none of the made-up one's.
    loop.memory.gauge.proc = runs_dir
    herd = FakeHerd(loop)
    return herd, fleet, show


def make_rules(**changes: Any) -> Rules:
    """Each under its own name, whichever layer it belongs to."""
    ours = set(Policy._fields) & changes.keys()
    theirs = set(GrantPolicy._fields) & changes.keys()
    rest = changes.keys() - ours - theirs
    return Rules(
        policy(**{name: changes[name] for name in ours}),
        GrantPolicy(**{name: changes[name] for name in theirs}),
        **{name: changes[name] for name in rest},
    )


def fake_machine(_trees: Trees, herds: Iterable[tuple[int, int]] = ()) -> Machine:
    return Machine(64 * GIB, 60 * GIB, herds_used_bytes=sum(used for _pid, used in herds))
