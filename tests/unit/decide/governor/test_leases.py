"""How applications share one machine, on a few leases."""

from dataclasses import replace

from ramherd.core.memory import MB
from ramherd.core.policies import GrantPolicy
from ramherd.core.reasons import Reason, Why
from ramherd.decide.governor.leases import (
    LOOK,
    Choice,
    Lease,
    choose_lease,
    choose_place,
    entitled,
    explain_ledger,
    goes_first,
    has_run_at_work,
    least_lease,
    owed,
    possible_bytes,
    waiting_since,
    wanted_lease,
)
from unit.decide.governor.scenes import held, pen, scene, waiting_job

POLICY = GrantPolicy()
QUANTUM = POLICY.quantum_bytes


def choose(mine: Lease, *others: Lease, budget: int = 100, granted: int = 0) -> Choice:
    return choose_lease(mine, others, budget, granted_bytes=granted)


def test_a_lease_grows_into_what_is_free() -> None:
    """Up to the wanted size, and to the free memory."""
    assert choose(Lease("a", 10, wants_bytes=60)) == Choice(60, 60)
    assert choose(Lease("a", 10, wants_bytes=160)) == Choice(100, 100)
    other = Lease("b", 30)
    assert choose(Lease("a", 10, wants_bytes=160), other) == Choice(70, 70)


def test_what_an_application_could_lease() -> None:
    """The unleased memory, or its share even if others hold that for now."""
    assert possible_bytes([], 100) == 100
    assert possible_bytes([Lease("b", 30)], 100) == 70
    assert possible_bytes([Lease("b", 90)], 100) == 50
    assert possible_bytes([Lease("b", 40), Lease("c", 50)], 100) == 33


def test_a_lease_falls_to_what_is_wanted_but_not_below_what_is_granted() -> None:
    """The difference is its debt."""
    assert choose(Lease("a", 60, wants_bytes=20)) == Choice(20, 20)
    assert choose(Lease("a", 60, wants_bytes=20), granted=35) == Choice(35, 20)
    # Bytes above its lease do not belong to it, whatever was granted to its runs.
    assert choose(Lease("a", 60, wants_bytes=20), granted=80) == Choice(60, 20)


def test_what_an_older_waiter_lacks_is_left_to_it() -> None:
    """Up to its share, and not more; a younger one has to wait itself."""
    mine = Lease("a", 10, wants_bytes=100, waiting_since_s=5.0)
    older = Lease("b", 20, wants_bytes=100, waiting_since_s=4.0)

    assert choose(mine, older) == Choice(50, 50)
    assert choose(mine, older._replace(waiting_since_s=6.0)).bytes == 50
    assert choose(mine._replace(bytes=0), older._replace(wants_bytes=30)) == Choice(70, 70)
    assert choose(mine, older._replace(waiting_since_s=None)) == Choice(80, 80)


def test_a_budget_that_fell_is_no_debt_of_one_below_its_share() -> None:
    """It keeps its lease."""
    assert choose(Lease("a", 10, wants_bytes=10), Lease("b", 200)) == Choice(10, 10)


def test_a_waiter_is_entitled_to_what_it_lacks_of_its_share() -> None:
    """Or of what it wants, if that is less; nothing if none of its jobs or runs waits."""
    lease = Lease("a", 10, wants_bytes=100, waiting_since_s=0.0)

    assert entitled(lease, 50) == 40
    assert entitled(lease._replace(wants_bytes=30), 50) == 20
    assert entitled(lease._replace(bytes=60), 50) == 0
    assert entitled(lease._replace(waiting_since_s=None), 50) == 0


def test_who_waits_longest_goes_first() -> None:
    """The name decides between equals; an application that does not wait never goes first."""
    mine = Lease("b", 0, waiting_since_s=5.0)

    assert goes_first(Lease("c", 0, waiting_since_s=4.0), mine)
    assert not goes_first(Lease("a", 0, waiting_since_s=6.0), mine)
    assert goes_first(Lease("a", 0, waiting_since_s=5.0), mine)
    assert not goes_first(Lease("c", 0, waiting_since_s=5.0), mine)
    assert not goes_first(Lease("a", 0), mine)
    assert goes_first(Lease("c", 0, waiting_since_s=9.0), Lease("a", 0))
    assert not goes_first(Lease("c", 0), Lease("a", 0))


def test_only_what_is_above_the_share_is_given_back() -> None:
    """Each gives its part of the shortage."""
    waiter = Lease("w", 0, wants_bytes=90, waiting_since_s=0.0)
    mine, other = Lease("a", 60), Lease("b", 30)

    # 30 for each: 90 of 90 are leased, and 30 are short; only mine is above its share.
    assert owed(mine, [other, waiter], 90) == 30
    assert owed(other, [mine, waiter], 90) == 0
    # 20 above and 10 above pay 2 to 1, rounded up.
    assert owed(Lease("a", 50), [Lease("b", 40), waiter], 90) == 20
    assert owed(Lease("b", 40), [Lease("a", 50), waiter], 90) == 10
    few = waiter._replace(wants_bytes=10)
    assert owed(Lease("a", 50), [Lease("b", 40), few], 90) == 7
    # Free memory is not short.
    assert owed(Lease("a", 40), [Lease("b", 20), few], 90) == 0
    assert owed(Lease("a", 40), [Lease("b", 20), waiter], 90) == 0
    assert owed(mine, [other], 100) == 0


def test_what_is_owed_lowers_the_target_and_then_the_lease() -> None:
    """Granted bytes come back one by one."""
    waiter = Lease("w", 0, wants_bytes=90, waiting_since_s=0.0)
    mine = Lease("a", 90, wants_bytes=90)

    assert choose(mine, waiter, budget=90, granted=80) == Choice(80, 45)
    assert choose(mine, waiter, budget=90) == Choice(45, 45)


def test_all_there_is_is_wanted_while_somebody_waits() -> None:
    """In the queue, or held."""
    assert wanted_lease(scene(1000, queue=[waiting_job(1)]), POLICY) == 1000 * MB
    assert wanted_lease(scene(1000, held("r1", 100, 99)), POLICY) == 1000 * MB


def test_else_what_is_granted_and_room_for_growth_is_wanted() -> None:
    """A quantum for each run and one more, or an eighth; never more than the largest lease."""
    run = pen("r1", 100, 100)

    assert wanted_lease(scene(100), POLICY) == QUANTUM
    assert wanted_lease(scene(400, run), POLICY) == 100 * MB + 2 * QUANTUM
    assert wanted_lease(scene(8000, run), POLICY) == 1100 * MB
    ending = replace(scene(8000, run), ending_bytes=50 * MB)
    assert wanted_lease(ending, POLICY) == 1150 * MB
    assert wanted_lease(scene(110, run), POLICY) == 110 * MB


def test_an_application_waits_since_its_oldest_waiter() -> None:
    """A held run, or the first job in the queue; an only run and a job that was stopped have waited
    since the job began.
    """
    queue = [waiting_job(1, queued_s=50.0), waiting_job(2, queued_s=10.0)]

    assert waiting_since(scene(1000)) is None
    assert waiting_since(scene(1000, pen("r1", 9, 9), pen("r2", 9, 9))) is None
    assert waiting_since(scene(1000, pen("r1", 9, 9, first_s=70.0))) == 70.0
    assert waiting_since(scene(1000, queue=queue)) == 50.0
    stopped = replace(queue[0], first_s=20.0)
    assert waiting_since(scene(1000, queue=[stopped, queue[1]])) == 20.0
    assert waiting_since(scene(1000, held("r1", 100, 60), held("r2", 100, 40))) == 40.0
    assert waiting_since(scene(1000, held("r1", 9, 60), held("r2", 9, 70), queue=queue)) == 50.0


def test_the_least_lease_is_that_of_the_only_run_or_of_the_smallest_job() -> None:
    """More than its grant if a run is held or a job was stopped; 0 if several runs go on."""
    stopped = waiting_job(1, need_bytes=400 * MB, first_s=1.0)
    asked = waiting_job(2, need_bytes=500 * MB)

    assert least_lease(scene(1000)) == 0
    assert least_lease(scene(1000, pen("r1", 9, 300))) == 300 * MB
    assert least_lease(scene(1000, held("r1", 300, 99), queue=[waiting_job(1)])) == 300 * MB + 1
    assert least_lease(scene(1000, pen("r1", 9, 300), held("r2", 300, 99))) == 0
    assert least_lease(scene(1000, queue=[stopped, asked])) == 400 * MB + 1
    assert least_lease(scene(1000, queue=[asked, waiting_job(3)])) == 0
    assert least_lease(scene(1000, queue=[asked])) == 500 * MB
    # A run that leaves is a stopped job soon.
    leaving = pen("r1", 300, 300, leaving=True)
    assert least_lease(scene(1000, leaving, queue=[asked])) == 300 * MB + 1
    assert least_lease(scene(1000, leaving, pen("r2", 9, 100))) == 100 * MB
    assert not has_run_at_work(scene(1000, leaving))
    assert has_run_at_work(scene(1000, leaving, pen("r2", 9, 100)))
    assert least_lease(scene(1000, queue=[asked] * LOOK + [waiting_job(3)])) == 500 * MB


def test_applications_that_need_more_than_their_share_take_turns() -> None:
    """The oldest keeps all that it has and takes what is free; the other gives up its lease as soon
    as none of its runs is at work.
    """
    old = Lease("a", 60, wants_bytes=100, waiting_since_s=1.0)
    young = Lease("b", 40, wants_bytes=100, waiting_since_s=2.0)

    def turn(mine: Lease, other: Lease, least: int, *, at_work: bool, granted: int = 0) -> Choice:
        return choose_lease(
            mine, [other], 100, granted_bytes=granted, least_bytes=least, is_at_work=at_work
        )

    assert turn(old, young, 51, at_work=True) == Choice(60, 60)
    assert turn(old, young, 50, at_work=True) == Choice(50, 50)
    assert turn(old, young._replace(bytes=0), 51, at_work=False) == Choice(100, 100)
    assert turn(young, old, 51, at_work=False) == Choice(0, 0)
    assert turn(young, old, 51, at_work=False, granted=30) == Choice(30, 0)
    assert turn(young, old, 51, at_work=True, granted=40) == Choice(40, 40)


def test_the_rest_beside_a_lease_above_the_share_is_given_up_if_it_is_too_small() -> None:
    """The older application may need it; what is free counts."""
    old = Lease("a", 60, wants_bytes=100, waiting_since_s=1.0)
    young = Lease("b", 30, wants_bytes=100, waiting_since_s=2.0)

    def left(other: Lease, least: int) -> Choice:
        return choose_lease(
            young, [other], 100, granted_bytes=0, least_bytes=least, is_at_work=False
        )

    assert left(old, 41) == Choice(0, 0)
    assert left(old, 40) == Choice(40, 40)
    assert left(old._replace(bytes=50), 50) == Choice(50, 50)
    assert left(old._replace(waiting_since_s=3.0), 41) == Choice(40, 40)


def test_a_share_is_whole_bytes() -> None:
    """Half of 101 is 50."""
    mine = Lease("a", 10, wants_bytes=100, waiting_since_s=5.0)
    older = Lease("b", 20, wants_bytes=100, waiting_since_s=4.0)
    waiter = Lease("w", 0, wants_bytes=90, waiting_since_s=0.0)

    assert choose(mine, older, budget=101) == Choice(51, 51)
    assert owed(Lease("a", 60), [Lease("b", 30), waiter], 91) == 29
    eighth = replace(scene(8000, pen("r1", 100, 100)), largest_bytes=8000 * MB + 7)
    assert wanted_lease(eighth, POLICY) == 1100 * MB


def test_what_is_left_to_others_is_never_written_down_as_mine() -> None:
    """Whatever was granted to its runs: the bytes that an older waiting application lacks, and
    bytes that do not exist.
    """
    mine = Lease("a", 10, wants_bytes=100, waiting_since_s=5.0)
    older = Lease("b", 20, wants_bytes=100, waiting_since_s=4.0)

    assert choose(mine, older, granted=100) == Choice(50, 50)
    assert choose(mine._replace(bytes=50), Lease("b", 50), granted=60) == Choice(50, 50)


def test_who_wants_nothing_has_nothing() -> None:
    """Not a byte."""
    assert choose(Lease("a", 0)) == Choice(0, 0)


def test_a_single_byte_is_given_back() -> None:
    """If a waiting application lacks it."""
    waiter = Lease("w", 0, wants_bytes=1, waiting_since_s=0.0)

    assert owed(Lease("a", 60), [Lease("b", 30), waiter], 90) == 1


def test_an_application_that_lost_its_lease_goes_first() -> None:
    """Its runs hold more than its lease; equal sizes mean no loss."""
    assert choose_place(5.0, 99, granted_bytes=100) == 0.0
    assert choose_place(None, 99, granted_bytes=100) == 0.0
    assert choose_place(5.0, 100, granted_bytes=100) == 5.0
    assert choose_place(None, 100, granted_bytes=100) is None


def test_a_ledger_that_does_not_answer_is_explained_by_what_is_known() -> None:
    """With a lease, even of zero, runs continue; without an answer no job starts."""
    assert explain_ledger("x", 0) == Reason(Why.LEDGER, what="x", lease_bytes=0)
    assert explain_ledger("x", None) == Reason(Why.NO_LEASE, what="x")
