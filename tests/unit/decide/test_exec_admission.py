"""Whether one session may start: it is never held, so it has to fit from the start."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.errors import NoRoom
from ramherd.core.model import Job, Limit, Machine, ProcId, Reason, Why
from ramherd.core.policies import Policy
from ramherd.core.units import GIB, MIB
from ramherd.decide.budget import budget_bytes, largest_budget_bytes
from ramherd.decide.exec_admission import find_lease_obstacle, find_obstacle
from ramherd.exec.admission import Admission
from ramherd.measure.cgroups import Trees
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import Owner, OwnerLock
from support.make import MACHINE, policy
from support.reached import Reached

# With `policy()` the budget is 6 GiB of the 14 GiB that are available, and at most 8 GiB.


def test_what_fits_may_start() -> None:
    """It may use the last byte of the budget."""
    assert find_obstacle(6 * GIB, MACHINE, policy()) is None


def test_what_does_not_fit_now_is_told_what_there_is() -> None:
    """Other programs may release memory: waiting helps for any size up to the whole budget."""
    for need in (6 * GIB + 1, 8 * GIB):
        assert find_obstacle(need, MACHINE, policy()) == Reason(
            Why.NO_ROOM_BUDGET, need_bytes=need, have_bytes=6 * GIB, budget_bytes=8 * GIB
        )


def test_what_never_fits_is_too_big() -> None:
    """Whatever other programs use now; `--budget`, if given, is the whole budget."""
    assert find_obstacle(8 * GIB + 1, MACHINE, policy()) == Reason(
        Why.TOO_BIG, need_bytes=8 * GIB + 1, budget_bytes=8 * GIB
    )
    capped = find_obstacle(GIB + 1, MACHINE, policy(budget_cap_bytes=GIB))
    assert capped is not None
    assert capped.numbers == {"need_bytes": GIB + 1, "budget_bytes": GIB}


def test_what_the_machine_has_left_counts_beside_the_budget() -> None:
    """Runs of other ramherds are within the budget, but use memory too."""
    machine = Machine(16 * GIB, GIB, herds_used_bytes=14 * GIB)

    assert find_obstacle(2 * GIB, machine, policy()) == Reason(
        Why.NO_ROOM_MACHINE, need_bytes=2 * GIB, have_bytes=GIB
    )
    assert find_obstacle(GIB, machine, policy()) is None


@given(
    st.integers(1, 20 * GIB) | st.integers(1, GIB) | st.just(MIB) | st.integers(8 * GIB, 20 * GIB),
    st.integers(0, 16 * GIB) | st.integers(12 * GIB, 16 * GIB),
    st.integers(1, 16 * GIB) | st.integers(8 * GIB, 16 * GIB),
    st.integers(0, 16 * GIB) | st.integers(0, GIB),
)
def test_what_may_start_fits_everywhere(
    reached: Reached, need: int, free: int, limit: int, used: int
) -> None:
    """In the budget, on the machine, and within each limit; otherwise there is a reason."""
    machine = Machine(16 * GIB, free, (Limit(limit, used),))
    room = min(budget_bytes(machine, 0, policy()), machine.free_bytes)

    found = find_obstacle(need, machine, policy())

    assert (found is None) == (need <= room)
    reached(found is None, "one that may start")
    if reached(found is not None and found.why is Why.TOO_BIG, "one that is too big"):
        assert need > largest_budget_bytes(machine, policy())


def test_a_lease_that_is_too_small_is_an_obstacle() -> None:
    """Other applications hold the rest of the budget, which `--budget` does not reduce."""
    capped = policy(budget_cap_bytes=GIB)

    assert find_lease_obstacle(GIB, GIB, MACHINE, capped) is None
    assert find_lease_obstacle(GIB, GIB - 1, MACHINE, capped) == Reason(
        Why.NO_ROOM_BUDGET, need_bytes=GIB, have_bytes=GIB - 1, budget_bytes=6 * GIB
    )


@pytest.fixture
def machine_of_16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramherd.exec.admission.read_machine", lambda _trees, **_herds: MACHINE)


def admission(
    runtime: Path, need_bytes: int, rules: Policy, lock: OwnerLock | None = None
) -> Admission:
    job = Job("j", "h", "claude", 0, ("claude",), "/", need_bytes)
    owner = lock.owner if lock is not None else Owner("me", "", ProcId(1, 1))
    files = RuntimeFiles(runtime, [], lambda: runtime)
    return Admission(job, rules, trees=Trees({}, None), runtime=files, owner=owner)


@pytest.mark.usefixtures("machine_of_16")
def test_a_session_waits_or_fails_as_its_user_said(tmp_path: Path) -> None:
    """It waits with a reason; with `--no-wait`, or if waiting does not help, it fails."""
    most = largest_budget_bytes(MACHINE, Policy())

    def ask(need_bytes: int, rules: Policy) -> Reason | None:
        with closing(admission(tmp_path, need_bytes, rules)) as asking:
            if rules.no_wait:
                asking.wait()
            return asking.find_obstacle()

    assert ask(MIB, Policy(no_wait=True)) is None
    answer = ask(most, Policy())
    assert answer is not None
    assert answer.why is Why.NO_ROOM_BUDGET
    with pytest.raises(NoRoom, match=r"and --no-wait was given$"):
        ask(most, Policy(no_wait=True))
    for no_wait in (False, True):
        never = pytest.raises(NoRoom, match=r"more than the whole budget of 12\.8 GiB$")
        rules = Policy(no_wait=no_wait)
        with closing(admission(tmp_path, most + 1, rules)) as asking, never:
            asking.wait()


def test_what_other_applications_use_is_no_obstacle_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their runs are counted in their leases. The first answer of the ledger contains that, and the
    session is not refused before it arrives.
    """

    def read(_trees: Trees, herds: Sequence[tuple[int, int]] = ()) -> Machine:
        return Machine(16 * GIB, 8 * GIB, herds_used_bytes=sum(used for _pid, used in herds))

    monkeypatch.setattr("ramherd.exec.admission.read_machine", read)
    with (
        closing(OwnerLock(tmp_path)) as other_lock,
        closing(Ledger(tmp_path / "ledger.db", tmp_path, other_lock.owner)) as other,
        closing(OwnerLock(tmp_path)) as lock,
    ):
        other.ask(Ask(4 * GIB, used_bytes=4 * GIB, granted_bytes=4 * GIB), 12 * GIB)
        # 12.8 GiB less 8 GiB used leaves 4.8; 4 of these 8 belong to a run of the other one.
        with closing(admission(tmp_path, 6 * GIB, Policy(), lock)) as asking:
            obstacle = asking.find_obstacle()

    assert obstacle is not None
    assert obstacle.numbers["have_bytes"] == int(0.8 * 16 * GIB) - 4 * GIB - 4 * GIB


@pytest.mark.usefixtures("machine_of_16")
def test_what_a_session_uses_is_in_the_ledger(tmp_path: Path) -> None:
    """At most its lease: for others that share the budget, the rest belongs to other programs."""
    with (
        closing(OwnerLock(tmp_path)) as lock,
        closing(admission(tmp_path, GIB, Policy(), lock)) as asking,
        closing(OwnerLock(tmp_path)) as other_lock,
        closing(Ledger(tmp_path / "ledger.db", tmp_path, other_lock.owner)) as other,
    ):
        assert asking.find_obstacle() is None
        for used, counted in ((MIB, MIB), (2 * GIB, GIB)):
            asking.renew(used, is_due=True)
            assert other.ask(Ask(0), GIB).others_used_bytes == counted
