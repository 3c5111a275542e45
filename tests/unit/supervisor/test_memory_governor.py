"""What the governor is shown of real runs, and what becomes of its orders."""

import errno
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import IdleProcess
from ramherd.agents.run_state import AgentRun
from ramherd.core.memory import Admit, Level, Mode, SetLevel
from ramherd.core.model import (
    Job,
    JobState,
    ProcId,
    Reason,
    Refusal,
    RunEnd,
    Stop,
    Stopping,
    Wait,
    Why,
)
from ramherd.core.policies import RecyclePolicy
from ramherd.core.run_phase import Starting
from ramherd.core.units import GIB, MIB
from ramherd.decide.ramp import begin_ramp
from ramherd.store.ledger import Ledger
from ramherd.store.sqlite import SqliteStore
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.supervisor.memory_governor import (
    FAILED_STARTS_S,
    HEADS,
    RECYCLE_EVERY_S,
    ROUNDS,
    MemoryGovernor,
)
from support.fakes import OWNER, FakeHerd, FakePen, FakeShow, fake_machine, make_herd, make_rules
from support.make import MACHINE, exited, job, stopping

HELD = Reason(Why.AT_GRANT, used_bytes=1, grant_bytes=1)


@dataclass
class Stage:
    """A herd whose runs are put there by hand."""

    herd: FakeHerd
    show: FakeShow

    @property
    def memory(self) -> MemoryGovernor:
        return self.herd.memory

    def add(
        self, name: str, used: int, grant: int, pen: FakePen | None = None, **of: Any
    ) -> LiveRun:
        """Older ones first; at work for ten minutes already."""
        pen = pen or FakePen(name, used, 1e9)
        pen.begin()
        number = len(self.herd.executor.runs)
        of_job, started_s = job(name, **{"memory": 0, **of}), number - 600.0
        run = LiveRun(
            name, of_job, 1, Path("/runs"), started_s, started_s, label_of(class_of(of_job)),
            pen=pen,
        )  # fmt: skip
        run.record_start(ProcId(number + 1, 1))
        run.measure()
        self.herd.executor.runs[name] = run
        self.herd.executor.enforcer.set_grant(run, grant, 0.0)
        return run

    @property
    def granted(self) -> int:
        return sum(run.grant.grant_bytes for run in self.herd.executor.runs.values())


Stand = Callable[..., Stage]


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """With these jobs in the queue and this lease."""
    monkeypatch.setattr("ramherd.supervisor.loop.read_machine", fake_machine)
    with (
        closing(SqliteStore(tmp_path / "ramherd.db")) as store,
        closing(Ledger(tmp_path / "ledger.db", tmp_path, OWNER)) as ledger,
    ):

        def make(lease: int, *jobs: Job, **rules: Any) -> Stage:
            herd, _fleet, show = make_herd(
                store, ledger, tmp_path / "runs", jobs, make_rules(**rules)
            )
            herd.memory.lease.lease_bytes, herd.memory.lease.is_known = lease, True
            herd.memory.machine = MACHINE
            return Stage(herd, show)

        yield make


def test_what_is_used_beyond_the_lease_is_owed(stand: Stand) -> None:
    """By runs and by idle warm processes; not before the ledger has answered."""
    stage = stand(100 * MIB)
    stage.add("live", 70 * MIB, 90 * MIB)
    assert stage.memory.owes_bytes == 0
    idle = cast("IdleProcess", SimpleNamespace(used_bytes=40 * MIB))
    stage.herd.executor.warm_pool.all["idle"] = idle
    assert stage.memory.owes_bytes == 10 * MIB
    stage.memory.lease.is_known = False
    assert stage.memory.owes_bytes == 0


def test_runs_that_are_over_are_not_part_of_the_scene(stand: Stand) -> None:
    """But what they were granted is theirs until their pens are empty."""
    stage = stand(GIB)
    stage.add("live", 50 * MIB, 100 * MIB)
    stage.add("exited", 50 * MIB, 100 * MIB).record_exit(exited())
    stage.add("refused", 0, 30 * MIB).refuse(Refusal(errno.ENOMEM, "x"), 0.0)
    stage.add("late", 50 * MIB, 7 * MIB).stop(stopping(RunEnd.TIMEOUT))

    scene = stage.memory.scene(1.0)

    assert [run.run for run in scene.runs] == ["live"]
    assert (scene.ending, scene.ending_bytes) == (3, 137 * MIB)
    assert scene.lease_bytes == GIB - 137 * MIB


def test_a_lease_smaller_than_what_is_leaving_is_nothing(stand: Stand) -> None:
    """Not less than nothing."""
    stage = stand(50 * MIB)
    stage.add("exited", MIB, 100 * MIB).record_exit(exited())

    assert stage.memory.scene(1.0).lease_bytes == 0


@pytest.mark.parametrize("end", [RunEnd.PREEMPTED, RunEnd.RECYCLED])
def test_who_makes_room_is_still_the_governors(stand: Stand, end: RunEnd) -> None:
    """Else it would stop the next one too. Once it has exited, it is over."""
    stage = stand(GIB)
    run = stage.add("r", 50 * MIB, 100 * MIB)
    run.stop(stopping(end))

    assert [one.leaving for one in stage.memory.scene(1.0).runs] == [True]
    run.record_exit(exited())
    assert stage.memory.scene(1.0).runs == []


def test_a_run_is_shown_as_it_is(stand: Stand) -> None:
    """What it uses without page cache, what it may, since when it waits, and what it is."""
    stage = stand(GIB)
    run = stage.add("r", 99 * MIB, 100 * MIB, memory=80 * MIB, memory_limit_bytes=GIB, priority=3)
    run.set_cache_full(is_full=True)
    run.first_s = -700.0

    (shown,) = stage.memory.scene(1.0).runs

    assert (shown.used_bytes, shown.grant_bytes, shown.held_since_s) == (99 * MIB, 100 * MIB, 0.0)
    assert (shown.promised_bytes, shown.limit_bytes, shown.priority) == (80 * MIB, GIB, 3)
    assert (shown.first_s, shown.started_s, shown.cache_full) == (-700.0, -600.0, True)


def test_the_queue_is_shown_as_far_as_it_matters(stand: Stand) -> None:
    """The first of each priority, with what a stopped run is known to need; none once we stop."""
    jobs = [job(f"j{n}", seq=n, memory=0, priority=n % 2) for n in range(3 * HEADS)]
    jobs += [job("on", seq=999, memory=0, priority=2, resume_argv=("on",))]
    stage = stand(GIB, *jobs)
    stage.herd.loop.runs.jobs.change(replace(stage.herd.queue["id-on"], seen_bytes=5 * MIB))

    queue = stage.memory.scene(1.0).queue

    assert len(queue) == 2 * HEADS + 1
    assert [one.priority for one in queue] == [2] + [1] * HEADS + [0] * HEADS
    assert [one.mode for one in queue[:2]] == [Mode.RESUMES, Mode.STARTS_OVER]
    assert (queue[0].need_bytes, queue[1].need_bytes) == (5 * MIB, 0)
    assert stage.memory.scene(1.0, queue=False).queue == []


def test_starts_under_way_and_the_ramp_are_shown(stand: Stand) -> None:
    """A start is under way until the keeper says that it runs."""
    stage = stand(GIB)
    stage.add("r1", MIB, 100 * MIB).phase = Starting()
    stage.add("r2", MIB, 100 * MIB)
    assert (stage.memory.scene(1.0).starting, stage.memory.scene(1.0).ramp) == (1, None)

    stage.memory.ramp = begin_ramp(4)
    assert stage.memory.scene(1.0).ramp == 4


def test_grants_are_carried_out_and_the_rest_is_handed_on(stand: Stand) -> None:
    """What one gives up comes before what another gets; starts are the supervisor's."""
    stage = stand(500 * MIB, job("next", memory=0))
    full = stage.add("full", 94 * MIB, 100 * MIB)
    idle = stage.add("idle", 50 * MIB, 400 * MIB)

    orders = stage.memory.govern(1.0)

    assert (full.held_since_s, full.grant.grant_bytes) == (None, 132 * MIB)
    assert idle.grant.grant_bytes == 368 * MIB
    assert [grant.run for grant in stage.memory.given] == ["idle", "full"]
    assert [type(order) for order in orders] == [Wait]


class Sudden(FakePen):
    """Grows the moment that less is granted: by so much each time."""

    by: int = 0

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        self.used += self.by if mark_bytes < self.mark_bytes else 0
        super().set_grant(mark_bytes, most_bytes)


def sudden(stage: Stage, by: int) -> LiveRun:
    pen = Sudden("idle", 50 * MIB, 1e9)
    pen.by = by
    return stage.add("idle", 0, 400 * MIB, pen)


def test_a_lowering_that_fails_leaves_the_rest_out(stand: Stand) -> None:
    """It is decided again with what is known then: nothing is given that was not given up."""
    stage = stand(500 * MIB)
    full = stage.add("full", 99 * MIB, 100 * MIB)
    idle = sudden(stage, by=330 * MIB)

    orders = stage.memory.govern(1.0)

    assert idle.grant.grant_bytes + full.grant.grant_bytes <= 500 * MIB
    assert idle.grant.grant_bytes >= 380 * MIB
    assert full.grant.grant_bytes == 100 * MIB + (400 * MIB - idle.grant.grant_bytes)
    assert orders == []


class Restless(FakePen):
    """Large whenever less is granted, small whenever that is taken back."""

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        self.used = most_bytes if mark_bytes < self.mark_bytes else 50 * MIB
        super().set_grant(mark_bytes, most_bytes)


def test_a_run_that_outgrows_each_lowering_ends_the_round(stand: Stand) -> None:
    """After some tries nothing is ordered, and nothing was given."""
    stage = stand(500 * MIB, job("next", memory=0))
    full = stage.add("full", 99 * MIB, 100 * MIB)
    pen = Restless("idle", 50 * MIB, 1e9)
    stage.add("idle", 0, 400 * MIB, pen)

    assert stage.memory.govern(1.0) == []

    assert (stage.granted, stage.memory.given) == (500 * MIB, [])
    assert full.held_since_s == 0.0
    assert len(pen.grants) == 1 + 2 * ROUNDS


def test_a_level_is_told_though_a_grant_failed(stand: Stand) -> None:
    """The round that is decided again reports it again."""
    stage = stand(500 * MIB)
    stage.add("full", 99 * MIB, 100 * MIB)
    sudden(stage, by=330 * MIB)
    stage.memory.failed_starts.append(0.5)

    orders = stage.memory.govern(1.0)

    assert [order.level for order in orders if isinstance(order, SetLevel)] == [Level.TIGHT]
    assert stage.memory.history.level is Level.TIGHT


def test_page_cache_gets_what_nobody_wants_or_is_dropped(stand: Stand) -> None:
    """The run itself is never held for it."""
    stage = stand(900 * MIB)
    run = stage.add("r", 10 * MIB, 100 * MIB, FakePen("r", 10 * MIB, 1e9, cache=90 * MIB))
    assert run.grant.cache_full
    stage.memory.govern(1.0)
    assert run.grant.grant_bytes == 190 * MIB

    run.set_cache_full(is_full=True)
    stage.memory.lease.lease_bytes = 200 * MIB
    stage.memory.govern(2.0)
    stage.herd.executor.enforcer.close()
    pen = run.pen
    assert isinstance(pen, FakePen)
    assert (run.grant.grant_bytes, run.grant.cache_full, len(pen.trims)) == (190 * MIB, False, 1)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_failed_starts_are_forgotten_after_a_minute(stand: Stand, scale: float) -> None:
    """A tenth of it when time goes ten times as fast."""
    stage = stand(GIB, time_scale=scale)
    stage.memory.failed_starts.append(0.0)

    stage.memory.tick(MACHINE, 0, FAILED_STARTS_S / scale)
    assert stage.memory.scene(1.0).failed_starts == 1
    stage.memory.tick(MACHINE, 0, FAILED_STARTS_S / scale + 0.1)
    assert stage.memory.scene(1.0).failed_starts == 0


def test_a_tick_holds_who_has_come_to_its_mark(stand: Stand) -> None:
    """Where nobody tells, looking has to do."""
    stage = stand(GIB)
    run = stage.add("r", MIB, 100 * MIB)
    assert isinstance(run.pen, FakePen)
    run.pen.used = 100 * MIB
    run.measure()

    stage.memory.tick(MACHINE, 100 * MIB, 3.0)

    assert run.held_since_s == 3.0


def test_the_first_of_a_herd_starts_at_once(stand: Stand) -> None:
    """With a lease, and nobody there: it gets what its class is expected to need."""
    stage = stand(GIB, job("first", memory=0), job("second", seq=2, memory=0))

    first, wait = stage.memory.govern(1.0)

    assert isinstance(first, Admit)
    assert isinstance(wait, Wait)
    assert (first.job, wait.reason.why) == ("id-first", Why.STAGGER)
    assert stage.memory.govern(1.0, queue=False) == []


def idle_agent(stage: Stage, name: str, used: int, **of: Any) -> LiveRun:
    """It waits for its model."""
    run = stage.add(name, used, used + 8 * MIB, **of)
    progress = SimpleNamespace(is_between_turns=True)
    run.agent_run = cast("AgentRun", SimpleNamespace(progress=progress))
    return run


def moved(stage: Stage, at_s: float) -> dict[str, list[int]]:
    """What was moved to swap, by run, once the thread has done it."""
    stage.memory.reclaim(at_s)
    stage.herd.executor.enforcer.worker.close()
    runs = stage.herd.executor.runs.values()
    return {run.id: run.pen.reclaims for run in runs if isinstance(run.pen, FakePen)}


def test_idle_memory_goes_to_swap_while_a_run_waits(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an agent between turns, without a limit; not of commands, tools, the held and the young.
    It is an event, and each gives once in a while.
    """
    monkeypatch.setattr("ramherd.supervisor.memory_governor.read_free_swap", lambda: GIB)
    stage = stand(GIB)
    stage.add("waiter", 100 * MIB, 100 * MIB).hold(HELD, 0.0)
    stage.add("command", 500 * MIB, 510 * MIB)
    idle_agent(stage, "limited", 400 * MIB, memory_limit_bytes=900 * MIB)
    idle_agent(stage, "young", 400 * MIB).started_s = 0.0
    working = idle_agent(stage, "working", 400 * MIB)
    cast("SimpleNamespace", working.agent_run).progress.is_between_turns = False
    idle_agent(stage, "idle", 120 * MIB)

    assert moved(stage, 0.4)["idle"] == []
    assert {run: sizes for run, sizes in moved(stage, 0.5).items() if sizes} == {"idle": [64 * MIB]}
    assert stage.show.events[-1] == ("run_reclaimed", "idle")
    assert moved(stage, 1.0)["idle"] == [64 * MIB]


def test_nothing_moves_while_nobody_waits_or_something_moves_already(stand: Stand) -> None:
    """Swap is not even looked at."""
    stage = stand(GIB)
    idle_agent(stage, "idle", 120 * MIB)
    assert moved(stage, 9.0) == {"idle": []}

    stage.add("waiter", 100 * MIB, 100 * MIB).hold(HELD, 0.0)
    stage.herd.executor.enforcer.worker.is_reclaiming = True
    assert moved(stage, 9.0)["idle"] == []


@pytest.fixture
def all_is_own(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """What the agents' own processes hold, by the pid of the first."""
    held: dict[int, int] = {}
    monkeypatch.setattr(
        "ramherd.supervisor.memory_governor.read_own_bytes",
        lambda first, _pids: held.get(first.pid) if first else None,
    )
    return held


def leaking(stage: Stage, all_is_own: dict[int, int], name: str = "r", **of: Any) -> LiveRun:
    run = stage.add(name, 60 * MIB, 200 * MIB, **of)
    assert run.first is not None
    all_is_own[run.first.pid] = 60 * MIB
    return run


RECYCLING = RecyclePolicy(recycle_at_bytes=50 * MIB)


def test_who_leaks_is_restarted_where_it_was(stand: Stand, all_is_own: dict[int, int]) -> None:
    """Looked at once a second; a run that is held, leaving, or small is not looked at."""
    stage = stand(GIB, recycling=RECYCLING)
    leaking(stage, all_is_own)
    leaking(stage, all_is_own, "held").hold(HELD, 0.0)
    leaking(stage, all_is_own, "told").stop(stopping(RunEnd.TIMEOUT))
    small = leaking(stage, all_is_own, "small")
    small.usage.reading = replace(small.reading, used_bytes=MIB)

    stops = stage.memory.recycle(1.0)

    assert [(stop.run, stop.end, stop.reason.why) for stop in stops] == [
        ("r", RunEnd.RECYCLED, Why.OVER_MARK)
    ]
    leaking(stage, all_is_own, "other")
    assert stage.memory.recycle(1.0 + 0.9 * RECYCLE_EVERY_S) == []
    assert [stop.run for stop in stage.memory.recycle(1.0 + RECYCLE_EVERY_S)] == ["other"]


def test_while_a_tool_call_is_open_nobody_is_restarted(
    stand: Stand, all_is_own: dict[int, int]
) -> None:
    """What the call holds is not the agent's own."""
    stage = stand(GIB, recycling=RECYCLING)
    leaking(stage, all_is_own)
    all_is_own.clear()

    assert stage.memory.recycle(1.0) == []


def test_who_cannot_go_on_where_it_was_is_not_restarted(stand: Stand) -> None:
    """Its user is told, once."""
    stage = stand(GIB, job("r"))
    run = stage.add("r", 60 * MIB, 200 * MIB)
    stop = Stop("r", RunEnd.RECYCLED, Reason(Why.OVER_MARK, own_bytes=2, mark_bytes=1))

    for _ in range(3):
        stage.herd.loop.runs.restart(stop, 1.0)

    assert (run.stop_order, stage.show.events) == (None, [("run_warning", "r")])


def test_who_can_go_on_where_it_was_is_told_to_end(stand: Stand) -> None:
    """As recycled, with the reason."""
    stage = stand(GIB, job("r"))
    run = stage.add("r", 60 * MIB, 200 * MIB, resume_argv=("on",))
    reason = Reason(Why.OVER_MARK, own_bytes=2, mark_bytes=1)

    stage.herd.loop.runs.restart(Stop("r", RunEnd.RECYCLED, reason), 1.0)

    assert run.stop_order == Stopping(RunEnd.RECYCLED, reason, 1.0)
    assert stage.show.events == [("run_stopping", "r")]


def test_a_job_that_makes_room_while_held_needs_what_it_had(stand: Stand) -> None:
    """One that was stopped at work does not: it had enough."""
    stage = stand(GIB, job("held", memory=0), job("free", seq=2, memory=0))
    held = stage.add("held", 99 * MIB, 100 * MIB)
    free = stage.add("free", 50 * MIB, 200 * MIB)
    reason = Reason(Why.DEBT, granted_bytes=2, lease_bytes=1)

    for run in (held, free):
        stage.herd.loop.runs.stop(run, Stopping(RunEnd.PREEMPTED, reason, 1.0))
        stage.herd.loop.runs.finish(run, RunEnd.PREEMPTED, reason, 2.0)

    roster = stage.herd.queue
    assert [roster[f"id-{name}"].state for name in ("held", "free")] == [JobState.QUEUED] * 2
    assert [roster[f"id-{name}"].need_bytes for name in ("held", "free")] == [100 * MIB, 0]
    assert held.holds.total_s == 1.0
