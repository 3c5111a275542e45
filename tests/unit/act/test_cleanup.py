"""What a run leaves in its TMPDIR is removed, and nothing else is touched."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ramherd.act import cleanup as module
from ramherd.act.cleanup import Cleanup, has_mounts, remove_tree
from ramherd.system.procfs import read_mounts
from support.fakes import FakePen


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "tmp"
    path.mkdir(parents=True)
    return path


def sweep(tmp: Path) -> Cleanup:
    sweeper = Cleanup()
    sweeper.add("R", FakePen("R", 0, 0.0), tmp)
    return sweeper


def test_a_tmpdir_is_removed_with_its_pen(tmp: Path) -> None:
    """Files, directories, and links, but not what they lead to."""
    (tmp / "a/b").mkdir(parents=True)
    (tmp / "a/b/file").touch()
    (tmp.parent / "kept").mkdir(mode=0o755)
    (tmp / "link").symlink_to(tmp.parent / "kept")

    (cleaned,) = sweep(tmp).finish()

    assert (cleaned.run, cleaned.removed) == ("R", True)
    assert [path.name for path in tmp.parent.iterdir()] == ["kept"]
    assert (tmp.parent / "kept").stat().st_mode & 0o777 == 0o755


def test_an_empty_tmpdir_is_gone_at_once(tmp: Path) -> None:
    """Most runs leave one, or never had one: no thread is started for it."""
    for _ in range(2):
        (cleaned,) = sweep(tmp).advance()
        assert cleaned.removed
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

    (cleaned,) = sweep(tmp).finish()

    assert cleaned.removed


Mounts = Callable[..., None]


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    """The machine has these mount points."""

    def set_mounts(*points: Path) -> None:
        (tmp_path / "self").mkdir(exist_ok=True)
        lines = [
            f"{n} 1 8:1 / {str(point).replace(' ', chr(92) + '040')} rw - ext4 /dev/sda1 rw\n"
            for n, point in enumerate(points)
        ]
        (tmp_path / "self/mountinfo").write_text("".join(lines))
        monkeypatch.setattr(module, "read_mounts", lambda: read_mounts(tmp_path))

    return set_mounts


@pytest.mark.parametrize("inside", ["", "a", "a/b c"])
def test_a_tmpdir_with_a_mount_in_it_is_left_untouched(
    tmp: Path, mounts: Mounts, inside: str
) -> None:
    """What is there is somebody else's, down to its permissions."""
    (tmp / "a/b c").mkdir(parents=True)
    (tmp / "a/b c/file").touch()
    (tmp / "a").chmod(0o755)
    mounts(Path("/"), tmp / inside)

    remove_tree(tmp)

    assert (tmp / "a/b c/file").exists()
    assert (tmp / "a").stat().st_mode & 0o777 == 0o755


def test_mounts_elsewhere_keep_no_tmpdir(tmp: Path, mounts: Mounts) -> None:
    """Above it, beside it, or of a like name."""
    (tmp / "file").touch()
    mounts(Path("/"), tmp.parent, tmp.parent / "tmp2", tmp.parent / "tmp2/a")

    assert not has_mounts(tmp)
    remove_tree(tmp)
    assert not tmp.exists()


def test_a_mount_is_found_below_a_state_directory_behind_a_link(tmp: Path, mounts: Mounts) -> None:
    """`XDG_STATE_HOME=~/link`: the kernel names the place where it leads to."""
    (tmp.parent.parent / "link").symlink_to(tmp.parent)
    (tmp / "a").mkdir()
    mounts(tmp / "a")

    assert has_mounts(tmp.parent.parent / "link/tmp")


def test_a_directory_that_cannot_be_removed_does_not_end_the_thread(
    tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the state directory is closed for a while. The pen is removed all the same."""
    (tmp / "file").touch()

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ramherd.act.cleanup.remove_tree", refuse)
    cleanup = sweep(tmp)

    (cleaned,) = cleanup.finish()

    assert cleaned.removed
