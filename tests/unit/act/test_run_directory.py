"""The directory of a run: all of it, or nothing."""

import errno
import os
import resource
from pathlib import Path

import pytest

from ramherd.act.run_directory import (
    SPARE_DESCRIPTORS,
    make_run_directory,
    remove_run_directory,
)


def test_everything_that_the_run_needs_is_there(tmp_path: Path) -> None:
    """Its TMPDIR, its logs, and the space for how it ends; no one else may read it."""
    path = tmp_path / "R"

    assert make_run_directory(path, None) == ""
    assert {one.name for one in path.iterdir()} == {"tmp", "out", "err", "status", "meta.json"}
    assert (path / "status").stat().st_size > 0
    assert path.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in path.iterdir() if one.is_file()} == {0o600}


def test_stdin_is_handed_on_as_it_is(tmp_path: Path) -> None:
    """Line ends and letters of all kinds, and no one else may read it."""
    path = Path(make_run_directory(tmp_path / "R", "a\r\n\u65e5\n"))

    assert path.read_bytes() == "a\r\n\u65e5\n".encode()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_directory_of_all_runs_is_made_again(tmp_path: Path) -> None:
    """Somebody has removed it; what is above is not ours to make."""
    make_run_directory(tmp_path / "runs/R", None)

    assert (tmp_path / "runs").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileNotFoundError):
        make_run_directory(tmp_path / "gone/runs/R", None)


def test_nothing_is_left_of_one_that_could_not_be_made(tmp_path: Path) -> None:
    """However far it came."""
    make_run_directory(tmp_path / "R", "text")
    (tmp_path / "R/err").unlink()

    remove_run_directory(tmp_path / "R")
    remove_run_directory(tmp_path / "never")

    assert list(tmp_path.iterdir()) == []


def test_the_last_descriptors_are_the_loops_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With none left it could not even read how much memory is free."""
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    limit = lowest + SPARE_DESCRIPTORS
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    make_run_directory(tmp_path / "enough", None)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit - 1, limit))

    with pytest.raises(OSError, match="Too many open files") as raised:
        make_run_directory(tmp_path / "few", None)
    assert raised.value.errno == errno.EMFILE
