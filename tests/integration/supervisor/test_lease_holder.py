"""Our part of the machine, asked of a real ledger."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.core.memory import Candidate, Penned, Scene
from ramherd.core.model import Machine
from ramherd.core.policies import GrantPolicy
from ramherd.core.units import GIB, MIB
from ramherd.decide.budget import budget_bytes
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock
from ramherd.supervisor.memory_governor import RENEW_AGAIN_S, LeaseHolder
from ramherd.system.boot_clock import read_boot_s
from support.make import MACHINE, policy

LARGEST = 8 * GIB
# The budget of now is 6 GiB.


@pytest.fixture
def ledgers(tmp_path: Path) -> Iterator[list[Ledger]]:
    """Of two applications."""
    with ExitStack() as stack:
        locks = [stack.enter_context(closing(OwnerLock(tmp_path))) for _ in range(2)]
        made = [Ledger(tmp_path / "ledger.db", tmp_path, lock.owner) for lock in locks]
        for ledger in made:
            ledger.file.patience_s = 0.01
            stack.enter_context(closing(ledger))
        yield made


def leasing_of(ledger: Ledger, **rules: int) -> LeaseHolder:
    return LeaseHolder(ledger, policy(**rules), GrantPolicy())


def a_scene(*runs: Penned, queue: int = 1, at_s: float = 1.0, ending: int = 0) -> Scene:
    waiting = [Candidate(f"q{n}", n, queued_s=0.5) for n in range(queue)]
    return Scene(at_s, 0, runs, waiting, LARGEST, ending_bytes=ending)


def penned(name: str, grant: int, *, held_s: float | None = None) -> Penned:
    return Penned(name, name, 1, 0.0, 0.0, grant, grant, held_since_s=held_s)


def test_all_that_there_is_is_ours_while_jobs_queue(ledgers: list[Ledger]) -> None:
    """The budget of now, not what it could be."""
    ours = leasing_of(ledgers[0])

    ours.renew(MACHINE, 0, a_scene())

    assert (ours.budget_bytes, ours.lease_bytes) == (6 * GIB, 6 * GIB)


def test_a_cap_is_ours_alone(ledgers: list[Ledger]) -> None:
    """`--budget 1GiB` leaves the rest to others, and is not taken from their share."""
    ours, theirs = leasing_of(ledgers[0], budget_cap_bytes=GIB), leasing_of(ledgers[1])
    capped = replace(a_scene(), largest_bytes=GIB)

    ours.renew(MACHINE, 0, capped)
    theirs.renew(MACHINE, 0, a_scene())

    assert (ours.lease_bytes, ours.budget_bytes) == (GIB, GIB)
    assert theirs.lease_bytes == 5 * GIB


def test_two_never_hold_the_same_byte(ledgers: list[Ledger]) -> None:
    """The first has it all and gives back what is above its share when another waits."""
    one, two = (leasing_of(ledger) for ledger in ledgers)
    one.renew(MACHINE, 0, a_scene())
    two.renew(MACHINE, 0, a_scene())
    assert two.lease_bytes == 0

    one.renew(MACHINE, 0, a_scene())
    two.renew(MACHINE, 0, a_scene())

    assert (one.lease_bytes, two.lease_bytes) == (3 * GIB, 3 * GIB)


def test_what_is_granted_is_given_back_only_when_it_is_free(ledgers: list[Ledger]) -> None:
    """Also what runs hold that are over but for their pens."""
    one, two = (leasing_of(ledger) for ledger in ledgers)
    busy = a_scene(penned("r", 2 * GIB), penned("s", 2 * GIB), ending=GIB)
    one.renew(MACHINE, 0, busy)
    two.renew(MACHINE, 0, a_scene())
    one.renew(MACHINE, 0, busy)
    two.renew(MACHINE, 0, a_scene())

    assert (one.lease_bytes, two.lease_bytes) == (3 * GIB, GIB)


def test_the_only_run_keeps_what_exceeds_its_share_while_it_is_the_oldest(
    ledgers: list[Ledger],
) -> None:
    """Otherwise neither of two applications could end what it began."""
    one, two = (leasing_of(ledger) for ledger in ledgers)
    large = a_scene(penned("r", 4 * GIB))
    one.renew(MACHINE, 0, large)
    two.renew(MACHINE, 0, a_scene())
    one.renew(MACHINE, 0, large)
    two.renew(MACHINE, 0, a_scene())

    assert (one.lease_bytes, two.lease_bytes) == (6 * GIB, 0)


def test_what_others_use_is_known_for_the_next_look(ledgers: list[Ledger]) -> None:
    """Their pid, too: which limits they live under is read from that."""
    one, two = (leasing_of(ledger) for ledger in ledgers)
    one.renew(MACHINE, 300 * MIB, a_scene())
    two.renew(MACHINE, 0, a_scene())

    (other,) = two.others
    assert (other.pid, other.used_bytes) == (ledgers[0].owner.proc.pid, 300 * MIB)


def test_what_could_be_ours_is_known_while_we_want_little(ledgers: list[Ledger]) -> None:
    """The level is judged by that: with nothing to do our lease is small. Others and a cap count,
    and before the ledger has answered it is the budget.
    """
    one, two = (leasing_of(ledger, budget_cap_bytes=5 * GIB) for ledger in ledgers)
    one.renew(MACHINE, 0, a_scene(queue=0))
    assert (one.lease_bytes, one.possible_bytes) == (GIB, 5 * GIB)
    two.renew(MACHINE, 0, a_scene())
    assert two.possible_bytes == 5 * GIB
    one.renew(MACHINE, 0, a_scene(queue=0))
    assert one.possible_bytes == 3 * GIB


def test_trouble_keeps_the_last_answer(ledgers: list[Ledger], tmp_path: Path) -> None:
    """Never more than the budget of now; over as soon as an answer comes."""
    ours = leasing_of(ledgers[0])
    ours.renew(MACHINE, 0, a_scene())
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ours.renew(MACHINE, 0, a_scene())
        assert "locked by another process" in ours.trouble
        assert ours.lease_bytes == 6 * GIB

        tighter = Machine(16 * GIB, 10 * GIB)
        ours.renew(tighter, 0, a_scene())
        assert ours.lease_bytes == budget_bytes(tighter, 0, policy()) == 2 * GIB
        assert ours.possible_bytes == 2 * GIB
        ours.renew(MACHINE, 0, a_scene())
        assert ours.lease_bytes == 2 * GIB
        other.execute("ROLLBACK")

    ours.renew(MACHINE, 0, a_scene())
    assert (ours.trouble, ours.lease_bytes) == ("", 6 * GIB)


def test_a_ledger_that_never_answered_leases_nothing(ledgers: list[Ledger], tmp_path: Path) -> None:
    """What others hold is not known: nobody starts."""
    ours = leasing_of(ledgers[0])
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ours.renew(MACHINE, 0, a_scene())
        other.execute("ROLLBACK")

    assert (ours.lease_bytes, ours.is_known, bool(ours.trouble)) == (0, False, True)
    assert ours.possible_bytes == 6 * GIB
    ours.renew(MACHINE, 0, a_scene())
    assert (ours.lease_bytes, ours.is_known, ours.trouble) == (6 * GIB, True, "")


def test_who_is_held_does_not_wait_for_the_next_tick(ledgers: list[Ledger]) -> None:
    """The ledger is asked again where it may have more, and not at each event."""
    ours = leasing_of(ledgers[0])
    ours.renew(MACHINE, 0, a_scene(queue=0, at_s=1.0))
    assert ours.lease_bytes < ours.budget_bytes
    held = penned("r", GIB, held_s=1.0)

    assert not ours.is_due(a_scene(held, at_s=1.0 + RENEW_AGAIN_S / 2))
    assert ours.is_due(a_scene(held, at_s=1.0 + RENEW_AGAIN_S * 1.1))
    assert not ours.is_due(a_scene(penned("r", GIB), at_s=9.0))
    ours.renew(MACHINE, 0, a_scene(held, at_s=2.0))
    assert not ours.is_due(a_scene(held, at_s=9.0))


def test_with_no_queue_no_more_is_held_than_growth_needs(ledgers: list[Ledger]) -> None:
    """An eighth of all there could be, beside what is granted: others may start."""
    ours = leasing_of(ledgers[0])

    ours.renew(MACHINE, 0, a_scene(penned("r", GIB), queue=0))

    assert ours.lease_bytes == 2 * GIB


def waiting_since_of(path: Path) -> float:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT waiting_since FROM leases WHERE waiting_since > 0").fetchall()
    ((since_s,),) = found
    assert isinstance(since_s, float)
    return since_s


def test_we_wait_since_our_start_at_the_earliest(ledgers: list[Ledger], tmp_path: Path) -> None:
    """Counted since boot, and the same in every tick. How long a job was queued before that was
    reckoned by the wall clock, which may have jumped.
    """
    ours = leasing_of(ledgers[0])
    ledgers[1].ask(Ask(6 * GIB, granted_bytes=6 * GIB), 6 * GIB)
    began_s = read_boot_s()
    old = [Candidate("q", 1, queued_s=-86_400.0)]
    for at_s in (100.0, 101.0):
        ours.renew(MACHINE, 0, replace(a_scene(at_s=at_s), queue=old))
        assert began_s <= waiting_since_of(tmp_path / "ledger.db") < began_s + 0.9
    # One that was queued half a second ago.
    ours.renew(MACHINE, 0, replace(a_scene(at_s=102.0), queue=[Candidate("q", 1, queued_s=101.5)]))
    assert waiting_since_of(tmp_path / "ledger.db") == pytest.approx(read_boot_s() - 0.5, abs=0.4)
