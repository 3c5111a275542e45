"""Files written whole, and directories removed with what is below them."""

import json
import os
import time
from pathlib import Path

import pytest

from ramherd.system.files import (
    RECORD_BYTES,
    allocate_record,
    open_private,
    parse_record,
    remove_dirs,
    write_json,
    write_record,
)


def test_directories_go_with_those_below_them(tmp_path: Path) -> None:
    """A run may have made cgroups of its own, and others in them."""
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)

    assert remove_dirs([str(tmp_path / "a"), str(tmp_path / "e")], 0.0)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_removed(tmp_path: Path) -> None:
    """Somebody was faster."""
    assert remove_dirs([str(tmp_path / "none")], 0.0)


def test_one_that_stays_does_not_keep_the_others(tmp_path: Path) -> None:
    """It is busy: a file stands for a process in it, and is never removed."""
    for name in ("busy/below", "free"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "busy/file").touch()

    began = time.monotonic()
    assert not remove_dirs([str(tmp_path / "busy"), str(tmp_path / "free")], 0.05)
    assert 0.05 <= time.monotonic() - began < 10.0
    assert [path.name for path in tmp_path.iterdir()] == ["busy"]
    assert (tmp_path / "busy/file").exists()


def test_one_below_that_went_meanwhile_is_not_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper removes the same directories at the same time."""
    (tmp_path / "a/b").mkdir(parents=True)
    rmdir = os.rmdir

    def race(path: str) -> None:
        rmdir(path)
        if path.endswith("/b"):
            rmdir(path)

    monkeypatch.setattr("ramherd.system.files.os.rmdir", race)

    assert remove_dirs([str(tmp_path / "a")], 0.1)
    assert not (tmp_path / "a").exists()


def test_a_disk_that_takes_a_little_at_a_time_gets_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may be short, and half a file is none."""
    write = os.write
    monkeypatch.setattr("ramherd.system.files.os.write", lambda fd, data: write(fd, data[:3]))

    write_json(str(tmp_path / "x"), {"code": 0, "text": "y" * 50})

    assert json.loads((tmp_path / "x").read_bytes()) == {"code": 0, "text": "y" * 50}
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


STATUS = {"code": 0, "signal": None, "at_s": 1.5}


def test_an_allocated_record_says_nothing_until_it_is_written(tmp_path: Path) -> None:
    """A run that has not ended, and the same one when it has: not one byte more."""
    path = tmp_path / "status"
    allocate_record(str(path))
    blocks = path.stat().st_blocks
    assert blocks > 0
    assert parse_record(path.read_bytes()) is None

    write_record(str(path), STATUS)
    assert parse_record(path.read_bytes()) == STATUS
    assert (path.stat().st_size, path.stat().st_blocks) == (RECORD_BYTES, blocks)


def test_a_part_of_a_record_is_none(tmp_path: Path) -> None:
    """Wherever the write stopped: the rest is what was allocated, or the end of the file."""
    write_record(str(tmp_path / "status"), STATUS)
    whole = (tmp_path / "status").read_bytes()
    for length in range(RECORD_BYTES):
        part = whole[:length]
        assert parse_record(part.ljust(RECORD_BYTES, b"\0")) is None
        assert parse_record(part) in (None, STATUS)


def test_a_record_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its keeper wrote a new file and renamed it."""
    write_json(str(tmp_path / "status"), STATUS)

    assert parse_record((tmp_path / "status").read_bytes()) == STATUS


def test_a_value_longer_than_a_record_is_refused(tmp_path: Path) -> None:
    """The newline at its end would not be in the same sector."""
    with pytest.raises(OSError, match="longer than a record"):
        write_record(str(tmp_path / "status"), {"text": "x" * RECORD_BYTES})
    assert not (tmp_path / "status").exists()


def test_a_private_file_is_plain_and_ours(tmp_path: Path) -> None:
    """A link, a directory and a pipe are refused, with what they are; none of them is opened."""
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, what in (
        ("link", f"it is a symbolic link to {tmp_path}/target, which is not followed"),
        ("directory", "it is not a plain file"),
        ("pipe", "it is not a plain file"),
    ):
        with pytest.raises(PermissionError, match=what):
            open_private(str(tmp_path / name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.close(open_private(str(tmp_path / "fresh"), os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "target").read_text() == "precious"
