"""Where files are, and whose directories are used."""

import os
from pathlib import Path

import pytest

from ramherd.config.paths import private_dir, runtime_dir, state_dir
from ramherd.core.errors import StoreError


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_state_is_below_xdg_state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or below ~/.local/state, and made 0700."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert state_dir() == tmp_path / "x/ramherd"
    assert mode(tmp_path / "x/ramherd") == 0o700

    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert state_dir() == tmp_path / "home/.local/state/ramherd"


def test_a_place_does_not_depend_on_where_we_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper changes to /: a path that is relative means another place to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", "run")

    assert state_dir().is_absolute()
    assert runtime_dir().is_absolute()


def test_the_runtime_directory_does_not_depend_on_who_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cron, sudo and hooks have no XDG_RUNTIME_DIR, so it is not asked; ours is."""
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg"))

    assert runtime_dir() == tmp_path / "mine"
    assert mode(tmp_path / "mine") == 0o700
    assert not (tmp_path / "xdg").exists()


@pytest.mark.parametrize("mode_", [0o755, 0o750, 0o701])
def test_a_directory_that_others_may_enter_is_refused_and_left_alone(
    tmp_path: Path, mode_: int
) -> None:
    """`RAMHERD_RUNTIME_DIR=~`: closing it would surprise, using it would be unsafe."""
    path = tmp_path / "there"
    path.mkdir()
    path.chmod(mode_)

    with pytest.raises(StoreError, match=f"{path} is accessible to other users") as caught:
        private_dir(path, "VARIABLE")
    assert mode(path) == mode_
    assert caught.value.hint == f"chmod 700 {path}"


def test_a_private_directory_of_any_name_is_used(tmp_path: Path) -> None:
    """It is as we would make it."""
    path = tmp_path / "there"
    path.mkdir(mode=0o700)

    assert private_dir(path, "VARIABLE") == path


@pytest.mark.parametrize("name", ["ramherd", "ramherd-1000"])
def test_a_directory_of_our_name_is_used_and_closed_to_others(tmp_path: Path, name: str) -> None:
    """What somebody opened to the group is ours again."""
    path = tmp_path / name
    path.mkdir(mode=0o755)
    (path / "file").touch()

    assert private_dir(path, "VARIABLE") == path
    assert mode(path) == 0o700
    assert (path / "file").exists()


def test_a_link_to_a_directory_of_ours_is_used(tmp_path: Path) -> None:
    """Somebody has more room on another disk. One that is open to others is left alone: its name
    is not ours.
    """
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / "ramherd").symlink_to(target)

    assert private_dir(tmp_path / "ramherd", "VARIABLE") == tmp_path / "ramherd"
    target.chmod(0o755)
    with pytest.raises(StoreError, match=f"{tmp_path}/ramherd is accessible to other users"):
        private_dir(tmp_path / "ramherd", "VARIABLE")
    assert mode(target) == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a link away")
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """In /tmp anyone can make it first, and point it anywhere."""
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(target)
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)

    with pytest.raises(StoreError, match=r"/link belongs to uid 12345, not to root \(uid 0\)"):
        private_dir(tmp_path / "link", "VARIABLE")


def test_a_file_is_refused(tmp_path: Path) -> None:
    """And a link that leads nowhere."""
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to(tmp_path / "none")

    lines = {
        "file": f"cannot make {tmp_path}/file: File exists",
        "broken": f"{tmp_path}/broken is a link to {tmp_path}/none, and there is none",
    }
    for name, line in lines.items():
        with pytest.raises(StoreError, match=line) as caught:
            private_dir(tmp_path / name, "VARIABLE")
        assert caught.value.exit_code == 3
        assert caught.value.hint


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whatever its permissions."""
    path = tmp_path / "theirs"
    path.mkdir(mode=0o777)
    os.chown(path, 12345, 12345)

    with pytest.raises(StoreError, match=r"/theirs belongs to uid 12345, not to root \(uid 0\)"):
        private_dir(path, "VARIABLE")


def test_no_hint_proposes_another_runtime_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have a ledger of its own, and two ledgers promise the same memory twice."""
    (tmp_path / "ramherd").touch()
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "ramherd"))

    with pytest.raises(StoreError) as caught:
        runtime_dir()
    assert f"ls -ld {tmp_path / 'ramherd'}" in caught.value.hint
    assert "RAMHERD_RUNTIME_DIR" not in caught.value.hint
