"""Whether one session may start: it is not held, so it has to fit from the beginning."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.errors import NoRoom
from ramherd.core.model import Limit, Machine, Reason, Why
from ramherd.core.policies import Policy
from ramherd.core.units import GIB, MIB
from ramherd.decide.admission import find_obstacle
from ramherd.decide.budget import budget_bytes, largest_budget_bytes
from ramherd.exec.admission import Asking
from ramherd.measure.cgroups import Trees
from support.make import MACHINE, policy

# With `policy()` the budget is 6 GiB of the 14 that are available, and 8 at most.


def test_what_fits_may_start() -> None:
    """Up to the last byte of the budget."""
    assert find_obstacle(6 * GIB, MACHINE, policy()) is None


def test_what_does_not_fit_now_is_told_what_there_is() -> None:
    """Others may give back what they use: up to the whole budget it is worth waiting."""
    for need in (6 * GIB + 1, 8 * GIB):
        assert find_obstacle(need, MACHINE, policy()) == Reason(
            Why.NO_ROOM_BUDGET, need_bytes=need, have_bytes=6 * GIB, budget_bytes=8 * GIB
        )


def test_what_never_fits_is_too_big() -> None:
    """Whatever others use now; `--budget` is the whole budget where it is given."""
    assert find_obstacle(8 * GIB + 1, MACHINE, policy()) == Reason(
        Why.TOO_BIG, need_bytes=8 * GIB + 1, budget_bytes=8 * GIB
    )
    capped = find_obstacle(GIB + 1, MACHINE, policy(budget_cap_bytes=GIB))
    assert capped is not None
    assert capped.numbers == {"need_bytes": GIB + 1, "budget_bytes": GIB}


def test_what_the_machine_has_left_counts_beside_the_budget() -> None:
    """Other ramherds' runs are within the budget, and hold memory all the same."""
    machine = Machine(16 * GIB, GIB, herds_used_bytes=14 * GIB)

    assert find_obstacle(2 * GIB, machine, policy()) == Reason(
        Why.NO_ROOM_MACHINE, need_bytes=2 * GIB, have_bytes=GIB
    )


@given(
    st.integers(1, 20 * GIB),
    st.integers(0, 16 * GIB),
    st.integers(1, 16 * GIB),
    st.integers(0, 16 * GIB),
)
def test_what_may_start_fits_everywhere(need: int, free: int, limit: int, used: int) -> None:
    """In the budget, on the machine, and below each limit; else there is a reason."""
    machine = Machine(16 * GIB, free, (Limit(limit, used),))
    room = min(budget_bytes(machine, 0, policy()), machine.free_bytes)

    found = find_obstacle(need, machine, policy())

    assert (found is None) == (need <= room)
    if found is not None and found.why is Why.TOO_BIG:
        assert need > largest_budget_bytes(machine, policy())


@pytest.fixture
def machine_of_16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramherd.exec.admission.read_trees", lambda: Trees({}, None))
    monkeypatch.setattr("ramherd.exec.admission.read_machine", lambda _trees, **_herds: MACHINE)


@pytest.mark.usefixtures("machine_of_16")
def test_a_session_waits_or_fails_as_its_user_said(tmp_path: Path) -> None:
    """It waits with a reason; with `--no-wait`, or when no waiting helps, it fails."""
    most = largest_budget_bytes(MACHINE, Policy())

    def ask(need_bytes: int, *, no_wait: bool) -> tuple[str, str] | None:
        asking = Asking("claude", need_bytes, str(tmp_path / "ledger.db"), "me", no_wait=no_wait)
        with closing(asking):
            return asking.ask()

    assert ask(MIB, no_wait=True) is None
    answer = ask(most, no_wait=False)
    assert answer is not None
    assert answer[0] == "no_room_budget"
    with pytest.raises(NoRoom, match=r"and --no-wait was given$"):
        ask(most, no_wait=True)
    with pytest.raises(NoRoom, match=r"more than the whole budget of 12\.8 GiB$"):
        ask(most + 1, no_wait=False)
