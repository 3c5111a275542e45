"""The ballast on file systems that differ."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ramherd.measure.disk_usage import BALLAST
from ramherd.supervisor.disk_watch import balance


def test_a_file_system_that_counts_no_blocks_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ballast that seems to hold nothing was not released: jobs start."""
    lstat = os.lstat

    def lstat_without_blocks(path: Path) -> object:
        return SimpleNamespace(st_size=lstat(path).st_size, st_blocks=0)

    monkeypatch.setattr("ramherd.measure.disk_usage.os.lstat", lstat_without_blocks)
    for _ in range(2):
        disk, events = balance(tmp_path)
        assert (disk.is_full, events) == (False, [])
    assert (tmp_path / BALLAST).exists()


def test_a_ballast_is_released_on_a_full_disk_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event for each."""
    free = [1 << 30]
    monkeypatch.setattr("ramherd.measure.disk_usage.read_free_bytes", lambda _path: free[0])
    kinds = []
    for size in (1 << 30, 1 << 30, 0, 0, 1 << 30, 1 << 30):
        free[0] = size
        disk, events = balance(tmp_path)
        assert disk.is_full == (size == 0)
        kinds += [kind for kind, _reason in events]

    assert kinds == ["ballast_released", "ballast_restored"]
