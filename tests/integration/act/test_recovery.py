"""What a ramherd that died left behind, when its pens can be cleared and when not."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.act import recovery as module
from ramherd.act.recovery import recover
from ramherd.core.model import ProcId
from ramherd.store.herds import (
    StoredPen,
    add_herd,
    add_pen,
    add_run,
    read_job_state,
    read_open_herds,
    read_pens,
)
from ramherd.store.owner import Owner, OwnerLock, lock_path
from ramherd.store.sqlite import SqliteStore
from ramherd.system.procfs import read_boot_id
from support.make import HERD, job, status

DEAD = Owner("DEAD", read_boot_id(), ProcId(os.getpid(), 1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """With a herd of a dead owner: one run, its pen, the fleet, and a TMPDIR."""
    (tmp_path / "R1/tmp/a").mkdir(parents=True)
    lock_path(tmp_path, "DEAD").parent.mkdir()
    lock_path(tmp_path, "DEAD").touch()
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        yield made


def add_dead(store: SqliteStore, owner: Owner = DEAD) -> None:
    add_herd(store, HERD, owner, [status(job("a"))])
    add_pen(store, "FLEET", HERD, "", {"kind": "fake"})
    add_run(store, "R1", "id-a", 1, 0)
    add_pen(store, "R1", HERD, "R1", {"kind": "fake"})
    store.commit()


def clear_only(monkeypatch: pytest.MonkeyPatch, *ids: str) -> list[str]:
    """Only these pens can be cleared; what was tried, in order."""
    tried: list[str] = []

    def clear(stored: StoredPen) -> bool:
        tried.append(stored.id)
        return stored.id in ids

    monkeypatch.setattr(module, "clear", clear)
    return tried


def test_a_dead_herd_is_closed_when_all_its_pens_are_cleared(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs before the fleet that holds them; nothing of it is left."""
    add_dead(store)
    tried = clear_only(monkeypatch, "R1", "FLEET")

    assert recover(store, tmp_path, tmp_path) == 1
    assert tried == ["R1", "FLEET"]
    assert (read_open_herds(store), read_pens(store, HERD)) == ([], [])
    assert read_job_state(store, "id-a") == "cancelled"
    assert not (tmp_path / "R1/tmp").exists()
    assert not lock_path(tmp_path, "DEAD").exists()


def test_a_herd_whose_pens_cannot_be_cleared_stays_open(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cleared is off the record, and the next start tries the rest again."""
    add_dead(store)
    clear_only(monkeypatch, "R1")

    assert recover(store, tmp_path, tmp_path) == 0
    assert [herd for herd, _owner in read_open_herds(store)] == [HERD]
    assert [pen.id for pen in read_pens(store, HERD)] == ["FLEET"]
    assert read_job_state(store, "id-a") == "queued"

    assert clear_only(monkeypatch, "FLEET") == []
    assert recover(store, tmp_path, tmp_path) == 1
    assert read_open_herds(store) == []


def test_what_a_reboot_ended_has_no_pens(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names and pids may be somebody else's by now: nobody is killed for them."""
    add_dead(store, Owner("DEAD", "another boot", ProcId(os.getpid(), 1)))
    tried = clear_only(monkeypatch)

    assert recover(store, tmp_path, tmp_path) == 1
    assert (tried, read_open_herds(store), read_pens(store, HERD)) == ([], [], [])


def test_who_is_alive_is_left_alone(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several ramherds share one store."""
    tried = clear_only(monkeypatch, "R1", "FLEET")
    with closing(OwnerLock(tmp_path)) as lock:
        add_dead(store, lock.owner)

        assert recover(store, tmp_path, tmp_path) == 0
        assert lock_path(tmp_path, lock.owner.id).exists()
    assert (tried, len(read_open_herds(store))) == ([], 1)
    assert (tmp_path / "R1/tmp/a").exists()
