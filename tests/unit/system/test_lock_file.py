"""Locks that show whether a process lives."""

import errno
import os
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.system.lock_file import acquire_lock, is_locked, remove_unlocked


def test_a_second_lock_is_refused(tmp_path: Path) -> None:
    """Whoever does not wait gets nothing, and the lock is free once it is closed."""
    path = str(tmp_path / "below/lock")
    first = acquire_lock(path)
    assert first is not None
    with closing(first):
        assert is_locked(path)
        assert acquire_lock(path, wait=False) is None
    assert not is_locked(path)


def test_a_lock_whose_file_was_removed_is_not_in_place(tmp_path: Path) -> None:
    """Another process could lock a file of that name. Ours does not remove that one."""
    path = str(tmp_path / "lock")
    ours = acquire_lock(path)
    assert ours is not None
    os.unlink(path)
    assert not ours.is_in_place()
    theirs = acquire_lock(path, wait=False)
    assert theirs is not None
    ours.remove()
    assert theirs.is_in_place()
    theirs.remove()
    assert not os.path.exists(path)


def test_only_locks_of_the_dead_are_removed(tmp_path: Path) -> None:
    """And where there is no directory, nothing is."""
    (tmp_path / "dead").touch()
    (tmp_path / "link").symlink_to(tmp_path / "dead")
    held = acquire_lock(str(tmp_path / "held"))
    assert held is not None
    with closing(held):
        assert remove_unlocked(str(tmp_path)) == 1
        assert {path.name for path in tmp_path.iterdir()} == {"held", "link"}
    assert remove_unlocked(str(tmp_path / "none")) == 0


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """The file that it leads to is neither made nor locked."""
    (tmp_path / "lock").symlink_to(tmp_path / "target")

    with pytest.raises(PermissionError, match="symbolic link"):
        acquire_lock(str(tmp_path / "lock"))
    assert not (tmp_path / "target").exists()
    assert not is_locked(str(tmp_path / "lock"))


def test_without_a_descriptor_nobody_is_declared_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be found out is no proof."""

    def fail(*_args: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", fail)
    assert is_locked(str(tmp_path / "lock"))
