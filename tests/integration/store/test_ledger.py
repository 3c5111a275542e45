"""Leases on real files."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock
from ramherd.store.sql.ledger import VERSION

MIB = 1 << 20
BUDGET = 1000 * MIB
Opener = Callable[..., Ledger]


@pytest.fixture
def open_ledger(tmp_path: Path) -> Iterator[Opener]:
    """Each call is an application of its own."""
    opened: list[tuple[Ledger, OwnerLock]] = []

    def open_one(warn: Callable[[str], None] | None = None) -> Ledger:
        lock = OwnerLock(tmp_path)
        ledger = Ledger(tmp_path / "ledger.db", tmp_path, lock.owner, warn)
        opened.append((ledger, lock))
        return ledger

    yield open_one
    for ledger, lock in opened:
        ledger.close()
        lock.close()


def test_two_applications_never_get_the_same_byte(open_ledger: Opener) -> None:
    """The second gets what the first left."""
    one, two = open_ledger(), open_ledger()

    assert one.ask(Ask(700 * MIB), BUDGET).lease_bytes == 700 * MIB
    assert two.ask(Ask(700 * MIB), BUDGET).lease_bytes == 300 * MIB


def test_what_is_above_the_share_is_asked_back(open_ledger: Opener) -> None:
    """The first is to come down to half, and holds on to what its runs were granted."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(BUDGET), BUDGET)
    two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET)

    answer = one.ask(Ask(BUDGET, granted_bytes=800 * MIB, waiting_since_s=2.0), BUDGET)
    assert answer.target_bytes == BUDGET // 2
    assert answer.lease_bytes == 800 * MIB

    assert two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET).lease_bytes == 200 * MIB
    one.ask(Ask(BUDGET, granted_bytes=400 * MIB, waiting_since_s=2.0), BUDGET)
    assert two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET).lease_bytes == BUDGET // 2


def test_nobody_below_its_share_is_asked_for_anything(open_ledger: Opener) -> None:
    """A waiter does not grow at the cost of one that has less."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(300 * MIB), BUDGET)
    two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET)

    assert one.ask(Ask(300 * MIB), BUDGET).target_bytes == 300 * MIB


def test_the_older_waiter_goes_first(open_ledger: Opener) -> None:
    """What comes free is kept for it."""
    big, late, early = open_ledger(), open_ledger(), open_ledger()
    big.ask(Ask(BUDGET), BUDGET)
    early.ask(Ask(300 * MIB, waiting_since_s=1.0), BUDGET)
    late.ask(Ask(300 * MIB, waiting_since_s=2.0), BUDGET)
    big.ask(Ask(700 * MIB, granted_bytes=700 * MIB), BUDGET)

    assert late.ask(Ask(300 * MIB, waiting_since_s=2.0), BUDGET).lease_bytes == 0
    assert early.ask(Ask(300 * MIB, waiting_since_s=1.0), BUDGET).lease_bytes == 300 * MIB


def test_the_lease_of_a_dead_application_is_void_at_once(
    open_ledger: Opener, tmp_path: Path
) -> None:
    """Killed without a word: the next one who asks has all of it."""
    script = """
import sys, time; from pathlib import Path
from ramherd.store.ledger import Ask, Ledger; from ramherd.store.owner import OwnerLock
runtime = Path(sys.argv[1]); lock = OwnerLock(runtime)
Ledger(runtime / "ledger.db", runtime, lock.owner).ask(Ask(1 << 40), 1 << 30)
print("ready", flush=True); time.sleep(60)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "ready\n"
        ledger = open_ledger()
        assert ledger.ask(Ask(1 << 29), 1 << 30).lease_bytes == 0
        child.kill()
        child.wait()

    assert ledger.ask(Ask(1 << 29), 1 << 30).lease_bytes == 1 << 29


def test_a_lease_of_another_boot_is_void(open_ledger: Opener, tmp_path: Path) -> None:
    """Even where its lock file was taken again."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(BUDGET), BUDGET)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:
        db.execute("UPDATE owners SET boot_id = 'before'")

    assert two.ask(Ask(BUDGET), BUDGET).lease_bytes == BUDGET


def test_a_fallen_budget_is_a_debt_of_those_above_their_share(open_ledger: Opener) -> None:
    """Nobody gets more, and the target is within the new budget."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(600 * MIB), BUDGET)
    two.ask(Ask(200 * MIB), BUDGET)

    answer = one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), 500 * MIB)
    assert answer.target_bytes == 300 * MIB
    assert two.ask(Ask(400 * MIB, granted_bytes=200 * MIB), 500 * MIB).lease_bytes == 200 * MIB


def break_file(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def break_pages(path: Path) -> None:
    """A good header, then noise."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE big (text)")
        db.executemany("INSERT INTO big VALUES (?)", [("x" * 500,)] * 200)
        db.execute("PRAGMA application_id = 0x52414D48")
        db.execute(f"PRAGMA user_version = {VERSION}")
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)


def make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE bookmarks (url)")


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE leases (future)")
        db.execute("PRAGMA application_id = 0x52414D48")
        db.execute("PRAGMA user_version = 99")


def make_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [break_file, break_pages, make_foreign, make_newer, make_directory]
)
def test_a_file_that_is_no_ledger_of_ours_is_set_aside(
    spoil: Callable[[Path], None], open_ledger: Opener, tmp_path: Path
) -> None:
    """With a warning that names it; nothing of it is lost, and leases go on."""
    spoil(tmp_path / "ledger.db")
    warnings: list[str] = []

    ledger = open_ledger(warnings.append)

    assert ledger.ask(Ask(100), BUDGET).lease_bytes == 100
    assert len(warnings) == 1
    assert "ledger.db.aside-" in warnings[0]
    assert len(list(tmp_path.glob("ledger.db.aside-*"))) >= 1


def test_a_file_moved_away_meanwhile_is_noticed(open_ledger: Opener, tmp_path: Path) -> None:
    """Two files would promise the same byte twice."""
    one = open_ledger()
    one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET)
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    two = open_ledger()
    two.ask(Ask(500 * MIB), BUDGET)

    assert one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET).lease_bytes == 500 * MIB


def test_what_is_used_counts_up_to_the_lease(open_ledger: Opener) -> None:
    """The rest of it is in nobody's lease."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(300 * MIB, kind="exec"), BUDGET)
    for used, counted in ((200 * MIB, 200 * MIB), (400 * MIB, 300 * MIB)):
        one.record_used(used, "exec")
        assert two.ask(Ask(MIB), BUDGET).others_used_bytes == counted


@pytest.mark.parametrize("act", [Ledger.release, lambda ledger: ledger.record_used(1)])
def test_a_short_lock_of_another_is_waited_for(
    open_ledger: Opener, act: Callable[[Ledger], None], tmp_path: Path
) -> None:
    """Also for a single statement."""
    ledger = open_ledger()
    ledger.ask(Ask(MIB), BUDGET)
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        commit = Timer(0.1, other.execute, ["COMMIT"])
        commit.start()
        act(ledger)
        commit.join()
