"""Leases on real files."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Timer

import pytest

from ramherd.core.errors import LedgerLocked, StoreError, StoreUnavailable
from ramherd.core.procid import ProcId
from ramherd.core.reasons import Why
from ramherd.store.lease_copies import LeaseCopy, write_copy
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import Owner, OwnerLock
from ramherd.store.sql.ledger import FORMAT, VERSION

MIB = 1 << 20
BUDGET = 1000 * MIB
Opener = Callable[[], Ledger]


@pytest.fixture
def open_ledger(tmp_path: Path) -> Iterator[Opener]:
    """Each call is an application of its own."""
    with ExitStack() as stack:

        def open_one() -> Ledger:
            lock = stack.enter_context(closing(OwnerLock(tmp_path)))
            ledger = Ledger(tmp_path / "ledger.db", tmp_path, lock.owner)
            return stack.enter_context(closing(ledger))

        yield open_one


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


def make_link(path: Path) -> None:
    path.with_name("elsewhere.db").touch()
    path.symlink_to(path.with_name("elsewhere.db"))


def make_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("spoil", [break_file, break_pages])
def test_a_broken_file_is_set_aside(
    spoil: Callable[[Path], None], open_ledger: Opener, tmp_path: Path
) -> None:
    """With a notice that names it; nothing of it is lost, and leases go on."""
    spoil(tmp_path / "ledger.db")

    ledger = open_ledger()

    assert ledger.ask(Ask(100), BUDGET).lease_bytes == 100
    (notice,) = ledger.pop_notices()
    assert notice.why is Why.LEDGER_SET_ASIDE
    assert (tmp_path / str(notice.numbers["aside"])).exists()
    assert ledger.pop_notices() == []


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (make_foreign, "ledger.db is another program's database"),
        (make_directory, "ledger.db: it is not a plain file"),
        (make_link, "ledger.db: it is a symbolic link to .*, which is not followed"),
    ],
)
def test_a_file_that_is_no_ledger_is_refused(
    spoil: Callable[[Path], None], says: str, open_ledger: Opener, tmp_path: Path
) -> None:
    """It is not ours to move away."""
    spoil(tmp_path / "ledger.db")

    with pytest.raises(StoreError, match=says):
        open_ledger()
    assert (tmp_path / "ledger.db").exists()


def change_version(path: Path, version: int, *more: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in (f"PRAGMA user_version = {version}", *more):
            db.execute(statement)


def test_a_newer_revision_of_the_format_is_shared(open_ledger: Opener, tmp_path: Path) -> None:
    """It has only more tables and columns, each with a default."""
    one = open_ledger()
    one.ask(Ask(600 * MIB), BUDGET)
    change_version(
        tmp_path / "ledger.db", VERSION + 1, "ALTER TABLE leases ADD COLUMN future TEXT DEFAULT ''",
        "CREATE TABLE futures (id TEXT)",
    )  # fmt: skip

    assert open_ledger().ask(Ask(600 * MIB), BUDGET).lease_bytes == 400 * MIB
    assert one.ask(Ask(600 * MIB), BUDGET).lease_bytes == 600 * MIB


def test_another_format_in_use_is_refused(open_ledger: Opener, tmp_path: Path) -> None:
    """With one line that names both; the ledger stays as it is, and its users with it."""
    one = open_ledger()
    one.ask(Ask(600 * MIB), BUDGET)
    change_version(tmp_path / "ledger.db", 100 * (FORMAT + 6))

    says = f"has format {FORMAT + 6}, and this ramherd uses format {FORMAT}: process {os.getpid()}"
    with pytest.raises(StoreError, match=says):
        open_ledger()
    assert one.ask(Ask(700 * MIB), BUDGET).lease_bytes == 700 * MIB


def test_another_format_that_nobody_uses_is_made_again(open_ledger: Opener, tmp_path: Path) -> None:
    """A file left in /tmp by another version keeps nobody from working."""
    with closing(open_ledger()) as one:
        one.ask(Ask(600 * MIB), BUDGET)
    change_version(
        tmp_path / "ledger.db", 2, "DROP TABLE leases", "CREATE TABLE leases (past TEXT)"
    )

    assert open_ledger().ask(Ask(700 * MIB), BUDGET).lease_bytes == 700 * MIB


def remove_ledger(path: Path) -> None:
    for file in path.parent.glob("ledger.db*"):
        file.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def cut_in_half(path: Path) -> None:
    os.truncate(path, 4096)


def overwrite(path: Path) -> None:
    """In place, as a careless program would do it: the same inode."""
    with path.open("r+b") as file:
        file.write(b"no database at all" * 1000)


SPOILS = [remove_ledger, truncate, cut_in_half, overwrite, break_file]


@pytest.mark.parametrize("spoil", SPOILS)
def test_no_byte_is_promised_twice_after_the_ledger_was_lost(
    spoil: Callable[[Path], None], open_ledger: Opener, tmp_path: Path
) -> None:
    """The one who makes the new one enters all live owners before it asks for anything."""
    one = open_ledger()
    one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET)
    spoil(tmp_path / "ledger.db")

    assert open_ledger().ask(Ask(BUDGET), BUDGET).lease_bytes <= 400 * MIB
    assert one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET).lease_bytes == 600 * MIB


def test_without_copies_the_holder_goes_first(open_ledger: Opener, tmp_path: Path) -> None:
    """The whole runtime directory was removed: the newcomer gives back what it does not use."""
    one = open_ledger()
    one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET)
    remove_ledger(tmp_path / "ledger.db")
    for copy in (tmp_path / "leases").iterdir():
        copy.unlink()
    two = open_ledger()
    two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET)

    assert one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET).lease_bytes == 0
    assert two.ask(Ask(BUDGET, waiting_since_s=1.0), BUDGET).lease_bytes == BUDGET // 2
    answer = one.ask(Ask(600 * MIB, granted_bytes=600 * MIB), BUDGET)
    assert answer.lease_bytes == BUDGET // 2


def test_the_copy_of_a_dead_owner_is_not_restored(open_ledger: Opener, tmp_path: Path) -> None:
    """It is removed."""
    dead = Owner("dead", "another boot", ProcId(1, 1))
    write_copy(str(tmp_path), LeaseCopy(dead, [("run", "", BUDGET, 0, BUDGET, None, None)]))

    assert open_ledger().ask(Ask(BUDGET), BUDGET).lease_bytes == BUDGET
    assert "dead" not in os.listdir(tmp_path / "leases")


def test_a_copy_goes_with_its_lease(open_ledger: Opener, tmp_path: Path) -> None:
    """Nothing is left in `leases/` when all have ended."""
    one = open_ledger()
    one.ask(Ask(MIB), BUDGET)
    assert os.listdir(tmp_path / "leases") == [one.owner.id]
    one.close()
    assert os.listdir(tmp_path / "leases") == []


def test_a_transaction_on_a_file_that_was_replaced_is_done_again(
    open_ledger: Opener, tmp_path: Path
) -> None:
    """What was written to the old one counts for nobody."""
    one = open_ledger()
    one.ask(Ask(MIB), BUDGET)
    calls: list[int] = []

    def act() -> None:
        calls.append(1)
        if len(calls) == 1:
            remove_ledger(tmp_path / "ledger.db")

    one.file.attempt(act)
    assert len(calls) == 2


def test_a_lease_without_an_owner_is_dropped(open_ledger: Opener, tmp_path: Path) -> None:
    """With a notice; the others go on."""
    one, two = open_ledger(), open_ledger()
    one.ask(Ask(300 * MIB), BUDGET)
    two.ask(Ask(300 * MIB), BUDGET)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:
        db.execute("DELETE FROM owners WHERE id = ?", (one.owner.id,))

    assert two.ask(Ask(BUDGET), BUDGET).lease_bytes == BUDGET
    (notice,) = two.pop_notices()
    assert notice.why is Why.LEASE_WITHOUT_OWNER
    assert notice.numbers["lease_bytes"] == 300 * MIB


def test_a_ledger_that_cannot_be_opened_stays_where_it_is(
    open_ledger: Opener, tmp_path: Path
) -> None:
    """Too many open files: that says nothing about the file."""
    one = open_ledger()
    one.ask(Ask(600 * MIB), BUDGET)
    two = open_ledger()
    for free in range(4):
        with few_descriptors(free):
            two.file.close()
            with suppress(StoreUnavailable):
                two.ask(Ask(BUDGET), BUDGET)

    assert list(tmp_path.glob("*aside*")) == []
    assert two.ask(Ask(BUDGET), BUDGET).lease_bytes == 400 * MIB


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """So many can still be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    filler = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (filler + 1 + free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(filler)


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


def test_the_holder_of_a_lock_is_named(open_ledger: Opener, tmp_path: Path) -> None:
    """Also one that somebody stopped, with what helps against it."""
    ledger = open_ledger()
    ledger.file.patience_s = 0.05
    script = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("ready", flush=True); time.sleep(60)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "ledger.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            with pytest.raises(LedgerLocked, match=rf"locked by process {child.pid} \(.*-c"):
                ledger.ask(Ask(MIB), BUDGET)
            os.kill(child.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            with pytest.raises(LedgerLocked, match=r"which is stopped$") as caught:
                ledger.ask(Ask(MIB), BUDGET)
            assert f"kill -CONT {child.pid}" in caught.value.hint
        finally:
            child.kill()
    assert ledger.ask(Ask(MIB), BUDGET).lease_bytes == MIB
