"""Which jobs start now, and why the first that does not has to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.decide.admission import admit
from ramherd.decide.budget import budget_bytes
from ramherd.model import Action, JobState, JobStatus, Machine, Reason, Settle, Start, Wait, Why
from ramherd.units import GIB, MIB
from unit.make import MACHINE, job, policy, run, snapshot, status

# With `policy()` the budget is 6 GiB of the 14 that are available.


def starts(actions: list[Action]) -> list[str]:
    return [action.job for action in actions if isinstance(action, Start)]


def queue_of(*sizes: int) -> list[JobStatus]:
    return [status(job(f"j{n}", seq=n, memory=size)) for n, size in enumerate(sizes, 1)]


def test_jobs_start_in_order_while_they_fit() -> None:
    """Each start takes its memory from the next, and says what there was."""
    actions = admit(snapshot(queue=queue_of(4 * GIB, 2 * GIB, GIB)), policy())

    assert actions == [
        Start("id-j1", Reason(Why.FITS, need_bytes=4 * GIB, have_bytes=6 * GIB)),
        Start("id-j2", Reason(Why.FITS, need_bytes=2 * GIB, have_bytes=2 * GIB)),
        Wait(
            "id-j3",
            Reason(Why.NO_ROOM_BUDGET, need_bytes=GIB, have_bytes=0, budget_bytes=6 * GIB),
        ),
    ]


def test_nobody_overtakes_the_first_that_waits() -> None:
    """A small job behind a large one waits too, or the large one would wait for ever."""
    actions = admit(snapshot(queue=queue_of(4 * GIB, 3 * GIB, MIB)), policy())

    assert starts(actions) == ["id-j1"]
    assert [type(action) for action in actions] == [Start, Wait]


def test_a_job_in_its_back_off_holds_back_nobody() -> None:
    """It is passed over until its time, without a word."""
    first, second = queue_of(GIB, GIB)
    late = status(job("late", memory=5 * GIB), not_before_s=100.1)
    on_time = status(job("now"), not_before_s=100.0)

    actions = admit(snapshot(queue=[late, on_time, first, second]), policy())

    assert starts(actions) == ["id-now", "id-j1", "id-j2"]


def test_running_runs_take_from_the_budget() -> None:
    """What they were promised, or hold if that is more."""
    grown = run("r", job("r", memory=GIB), used=5 * GIB)

    # The 5 GiB of the fleet are not outside, so the budget is 8 GiB, and 3 of them are left.
    (fits,) = admit(snapshot(grown, queue=queue_of(3 * GIB), fleet=5 * GIB), policy())
    (waits,) = admit(snapshot(grown, queue=queue_of(4 * GIB), fleet=5 * GIB), policy())

    assert isinstance(fits, Start)
    numbers = {"need_bytes": 4 * GIB, "have_bytes": 3 * GIB, "budget_bytes": 8 * GIB}
    assert waits == Wait("id-j1", Reason(Why.NO_ROOM_BUDGET, **numbers))


def test_what_the_machine_has_available_counts_beside_the_budget() -> None:
    """Less what running runs were promised and have not taken yet."""
    machine = Machine(16 * GIB, 5 * GIB)
    running = run("r", job("r", memory=4 * GIB), used=GIB)
    now = snapshot(running, queue=queue_of(3 * GIB), machine=machine, fleet=11 * GIB)

    assert admit(now, policy()) == [
        Wait("id-j1", Reason(Why.NO_ROOM_MACHINE, need_bytes=3 * GIB, have_bytes=2 * GIB))
    ]


def test_max_parallel_counts_runs_that_are_on_their_way_out_too() -> None:
    """A run holds its slot until its pen is empty."""
    leaving = run("a", clearing_s=99.0)
    now = snapshot(leaving, queue=queue_of(MIB, MIB))

    assert admit(now, policy(max_parallel=2)) == [
        Start("id-j1", Reason(Why.FITS, need_bytes=MIB, have_bytes=5 * GIB)),
        Wait("id-j2", Reason(Why.MAX_PARALLEL, running=2, limit=2)),
    ]


def test_starts_are_staggered() -> None:
    """Only so many are under way at a time; those that have started do not count."""
    begun, beginning = run("a", started=True), run("b", started=False)
    now = snapshot(begun, beginning, queue=queue_of(MIB, MIB, MIB))

    actions = admit(now, policy(max_starting=3))

    assert starts(actions) == ["id-j1", "id-j2"]
    assert actions[-1] == Wait("id-j3", Reason(Why.STARTING, starting=3, limit=3))


def test_a_job_larger_than_the_whole_budget_fails_and_holds_back_nobody() -> None:
    """It would wait for ever; what others use now does not matter for that."""
    actions = admit(snapshot(queue=queue_of(8 * GIB + 1, GIB)), policy())

    reason = Reason(Why.TOO_BIG, need_bytes=8 * GIB + 1, budget_bytes=8 * GIB)
    assert actions[0] == Settle("id-j1", JobState.FAILED, reason)
    assert starts(actions) == ["id-j2"]


def test_a_job_as_large_as_the_whole_budget_waits() -> None:
    """Others may give back what they use."""
    (action,) = admit(snapshot(queue=queue_of(8 * GIB)), policy())

    assert isinstance(action, Wait)


def test_the_cap_makes_a_job_too_big() -> None:
    """`--budget` is the whole budget where it is given."""
    (action,) = admit(snapshot(queue=queue_of(GIB + 1)), policy(budget_cap_bytes=GIB))

    assert isinstance(action, Settle)
    assert action.reason.numbers == {"need_bytes": GIB + 1, "budget_bytes": GIB}


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [
        (MACHINE, {"need_bytes": 7 * GIB, "have_bytes": 6 * GIB, "budget_bytes": 6 * GIB}),
        (Machine(16 * GIB, 6 * GIB), {"need_bytes": 7 * GIB, "have_bytes": 0, "budget_bytes": 0}),
    ],
)
def test_no_wait_fails_the_first_job_with_the_numbers(
    machine: Machine, numbers: dict[str, int]
) -> None:
    """It would wait for memory: it fails at once, with what there was."""
    now = snapshot(queue=queue_of(7 * GIB, GIB), machine=machine)

    assert admit(now, policy(no_wait=True)) == [
        Settle("id-j1", JobState.FAILED, Reason(Why.NO_WAIT, **numbers))
    ]


def test_no_wait_waits_for_no_memory_of_its_own_herd_either() -> None:
    """Whoever holds it, also if they start in this very round."""
    running = run("r", job("r", memory=5 * GIB))
    fails = Settle(
        "id-j1",
        JobState.FAILED,
        Reason(Why.NO_WAIT, need_bytes=2 * GIB, have_bytes=GIB, budget_bytes=6 * GIB),
    )

    alone = admit(snapshot(running, queue=queue_of(2 * GIB)), policy(no_wait=True))
    both = admit(snapshot(queue=queue_of(5 * GIB, 2 * GIB)), policy(no_wait=True))

    assert alone == [fails]
    assert [type(action) for action in both] == [Start, Settle]
    assert both[1] == Settle("id-j2", JobState.FAILED, fails.reason)


def test_no_wait_fails_for_memory_that_the_machine_lacks() -> None:
    """The budget has room, the machine has not."""
    machine = Machine(16 * GIB, 5 * GIB)
    now = snapshot(queue=queue_of(6 * GIB), machine=machine, fleet=11 * GIB)

    assert admit(now, policy(no_wait=True)) == [
        Settle(
            "id-j1", JobState.FAILED, Reason(Why.NO_WAIT, need_bytes=6 * GIB, have_bytes=5 * GIB)
        )
    ]


def test_no_wait_waits_for_what_is_not_memory() -> None:
    """`--max-parallel` and starts under way are over soon, and are nobody's lack."""
    begun, beginning = run("a"), run("b", started=False)

    (slots,) = admit(snapshot(begun, queue=queue_of(MIB)), policy(no_wait=True, max_parallel=1))
    (starting,) = admit(
        snapshot(beginning, queue=queue_of(MIB)), policy(no_wait=True, max_starting=1)
    )

    assert slots == Wait("id-j1", Reason(Why.MAX_PARALLEL, running=1, limit=1))
    assert starting == Wait("id-j1", Reason(Why.STARTING, starting=1, limit=1))


def test_a_job_that_was_seen_to_need_more_is_admitted_with_that() -> None:
    """Not with what was asked for, or it would have to make room again; never with less."""
    seen = status(job("j1", memory=GIB), seen_bytes=5 * GIB)
    small = status(job("j2", memory=2 * GIB), seen_bytes=MIB)

    actions = admit(snapshot(queue=[seen, small]), policy())

    assert actions == [
        Start("id-j1", Reason(Why.FITS, need_bytes=5 * GIB, have_bytes=6 * GIB)),
        Wait(
            "id-j2",
            Reason(Why.NO_ROOM_BUDGET, need_bytes=2 * GIB, have_bytes=GIB, budget_bytes=6 * GIB),
        ),
    ]


def test_a_job_that_was_seen_to_need_more_than_all_there_is_fails() -> None:
    """It would wait for ever."""
    (action,) = admit(snapshot(queue=[status(job("j1", memory=GIB), seen_bytes=9 * GIB)]), policy())

    reason = Reason(Why.TOO_BIG, need_bytes=9 * GIB, budget_bytes=8 * GIB)
    assert action == Settle("id-j1", JobState.FAILED, reason)


def test_an_empty_queue_asks_for_nothing() -> None:
    """No job, no word."""
    assert admit(snapshot(run()), policy()) == []


@given(
    st.lists(st.integers(1, 8 * GIB), max_size=12),
    st.lists(st.tuples(st.integers(1, 2 * GIB), st.integers(0, 2 * GIB)), max_size=6),
    st.none() | st.integers(1, 5),
)
def test_starts_never_promise_more_than_there_is(
    sizes: list[int], running: list[tuple[int, int]], most: int | None
) -> None:
    """With what runs already, they fit in the budget, in the machine and in --max-parallel."""
    runs = [run(f"r{n}", job(f"r{n}", memory=m), used=u) for n, (m, u) in enumerate(running)]
    fleet = sum(used for _memory, used in running)
    now = snapshot(*runs, queue=queue_of(*sizes), fleet=fleet)
    rules = policy(max_parallel=most)

    begun = starts(admit(now, rules))

    new = sum(s.job.memory_bytes for s in now.queue if s.job.id in begun)
    held = sum(max(memory, used) for memory, used in running)
    to_come = sum(max(memory - used, 0) for memory, used in running)
    assert not begun or held + new <= budget_bytes(MACHINE, fleet, rules)
    assert not begun or to_come + new <= MACHINE.available_bytes
    assert most is None or not begun or len(runs) + len(begun) <= most
    assert begun == sorted(begun, key=lambda job_id: int(job_id.removeprefix("id-j")))
