"""Whatever jobs want, and however fast: a herd comes to its end within its memory."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramherd.core.model import JobState
from ramherd.core.units import MIB
from support.fakes import fake_machine
from support.herds import Ran, herds_at
from support.make import job
from support.reached import Reached


@pytest.fixture(autouse=True)
def made_up_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramherd.supervisor.loop.read_machine", fake_machine)
    monkeypatch.setattr("ramherd.supervisor.loop.read_engine_clients", dict)


BUDGET_MIB = 1000
WANTS = st.fixed_dictionaries(
    {
        # Up to 900 MiB each, at up to 400 MiB a second.
        "rate": st.floats(1, 400) | st.just(200.0),
        "full": st.integers(1, 900) | st.just(500),
        "resume_argv": st.sampled_from(((), ("on",))),
        "priority": st.integers(0, 2),
        "memory": st.sampled_from((0, 0, 50 * MIB, 400 * MIB)),
        "memory_limit_bytes": st.sampled_from((None, None, 950 * MIB)),
    }
)

# Four of these do not fit at once.
GREEDY = WANTS.map(lambda one: {**one, "rate": 200.0, "full": 500})


def run_any(wants: list[dict[str, Any]]) -> Ran:
    grows = [(one.pop("rate") * MIB, one.pop("full") * MIB) for one in wants]
    jobs = [job(f"j{seq}", seq=seq, **one) for seq, one in enumerate(wants)]
    herds: list[Ran] = []

    def look(_now_s: float) -> None:
        executor, lease = herds[0].herd.executor, herds[0].herd.memory.lease
        granted = sum(run.grant.grant_bytes for run in executor.runs.values())
        assert granted <= lease.lease_bytes <= BUDGET_MIB * MIB
        held = sum(run.frozen_s is not None for run in executor.runs.values())
        assert held == sum(pen.frozen for pen in herds[0].fleet.pens.values() if pen.alive)

    with tempfile.TemporaryDirectory() as path, herds_at(Path(path)) as run_herd:
        return run_herd(
            jobs, budget_cap_bytes=BUDGET_MIB * MIB, lasts_s=6.0, begin=herds.append,
            meanwhile=look, grows=lambda number: grows[(number - 1) % len(grows)],
        )  # fmt: skip


@settings(max_examples=20)
@given(st.lists(WANTS, min_size=1, max_size=8) | st.lists(GREEDY, min_size=4, max_size=8))
def test_a_herd_comes_to_its_end_within_its_lease(
    reached: Reached, wants: list[dict[str, Any]]
) -> None:
    """Every job is done, none is killed or lost, and after each step no more is granted than is
    leased.
    """
    ran = run_any(wants)

    reached(any(one.held_s for one in ran.herd.counters.jobs.values()), "one that is held")
    assert ran.states == {JobState.DONE: len(wants)}
    assert ran.herd.counters.oom_kills == ran.herd.counters.limit_kills == 0
    assert not ran.herd.executor.runs
