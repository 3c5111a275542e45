"""Whether the ramherd that owns a herd is alive."""

import os
from contextlib import closing
from pathlib import Path

from ramherd.core.model import ProcId
from ramherd.store.owner import Owner, OwnerLock, is_alive, lock_path
from ramherd.system.lock_file import is_locked
from ramherd.system.procfs import read_boot_id

NOBODY = ProcId(os.getpid(), 1)


def test_an_owner_lives_while_it_holds_its_lock(tmp_path: Path) -> None:
    """Whatever its pid says: after a fork into another namespace that is another."""
    with closing(OwnerLock(tmp_path)) as lock:
        assert is_alive(lock.owner._replace(proc=NOBODY), tmp_path)
        assert is_locked(str(lock_path(tmp_path, lock.owner.id)))
    assert not is_alive(lock.owner._replace(proc=NOBODY), tmp_path)


def test_an_owner_lives_while_its_process_does(tmp_path: Path) -> None:
    """Somebody cleaned the runtime directory: the lock's file is gone, the process is not."""
    with closing(OwnerLock(tmp_path)) as lock:
        lock_path(tmp_path, lock.owner.id).unlink()

        assert is_alive(lock.owner, tmp_path)


def test_an_owner_of_another_boot_is_dead(tmp_path: Path) -> None:
    """Pids and start times begin again with each boot, and so do the files in /run."""
    with closing(OwnerLock(tmp_path)) as lock:
        assert not is_alive(lock.owner._replace(boot_id="another"), tmp_path)


def test_a_file_that_nobody_locks_is_of_a_dead_owner(tmp_path: Path) -> None:
    """The kernel let go of it in whatever kind of death."""
    path = lock_path(tmp_path, "O")
    path.parent.mkdir()
    path.touch()

    assert not is_alive(Owner("O", read_boot_id(), NOBODY), tmp_path)


def test_a_lock_leaves_no_file(tmp_path: Path) -> None:
    """And is private while it is there."""
    with closing(OwnerLock(tmp_path)) as lock:
        path = lock_path(tmp_path, lock.owner.id)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == []
