"""What a run leaves in its TMPDIR is removed, and nothing else is touched."""

import os
from pathlib import Path

import pytest

from ramherd.act.sweeper import Sweeper, remove_tree
from unit.fakes import FakePen


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "tmp"
    path.mkdir(parents=True)
    return path


def sweep(tmp: Path) -> Sweeper:
    sweeper = Sweeper()
    sweeper.sweep("R", FakePen("R", 0, 0.0), tmp)
    return sweeper


def test_a_tmpdir_is_removed_with_its_pen(tmp: Path) -> None:
    """Files, directories, and links, but not what they lead to."""
    (tmp / "a/b").mkdir(parents=True)
    (tmp / "a/b/file").touch()
    (tmp.parent / "kept").mkdir(mode=0o755)
    (tmp / "link").symlink_to(tmp.parent / "kept")

    (swept,) = sweep(tmp).finish()

    assert (swept.run, swept.removed) == ("R", True)
    assert [path.name for path in tmp.parent.iterdir()] == ["kept"]
    assert (tmp.parent / "kept").stat().st_mode & 0o777 == 0o755


def test_an_empty_tmpdir_is_gone_at_once(tmp: Path) -> None:
    """Most runs leave one, or never had one: no thread is started for it."""
    for _ in range(2):
        (swept,) = sweep(tmp).advance()
        assert swept.removed
        assert not tmp.exists()


def test_directories_without_write_permission_are_removed(tmp: Path) -> None:
    """Go's module cache is read-only."""
    (tmp / "mod/x").mkdir(parents=True)
    (tmp / "mod/x/file").touch()
    (tmp / "mod/x").chmod(0o555)
    (tmp / "mod").chmod(0o555)

    remove_tree(tmp)

    assert not tmp.exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_directories_without_any_permission_are_removed(tmp: Path) -> None:
    """`chmod 0` in a test of somebody's."""
    (tmp / "closed/x").mkdir(parents=True)
    (tmp / "closed").chmod(0)

    remove_tree(tmp)
    left = tmp.exists()
    if left:
        (tmp / "closed").chmod(0o700)

    assert not left


def test_a_tmpdir_that_became_a_link_leads_nowhere(tmp: Path) -> None:
    """`rm -r $TMPDIR; ln -s /var/tmp $TMPDIR`: other people's directories stay as they are."""
    others = tmp.parent / "others"
    (others / "inside").mkdir(parents=True)
    for path in (others, others / "inside"):
        path.chmod(0o755)
    tmp.rmdir()
    tmp.symlink_to(others)

    remove_tree(tmp)

    assert [path.stat().st_mode & 0o777 for path in (others, others / "inside")] == [0o755] * 2


def test_a_tmpdir_that_cannot_be_removed_does_not_keep_the_pen(tmp: Path) -> None:
    """A mount, a file of another user, a link: the cgroup goes all the same."""
    tmp.rmdir()
    tmp.symlink_to(tmp.parent)

    (swept,) = sweep(tmp).finish()

    assert swept.removed
