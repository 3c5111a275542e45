"""Faults of the ground that ramherd stands on. Each test breaks one thing under real processes and
records what was lost; `make faults` prints the table.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.conftest import make_ramherd, nothing_left, pens, ramherd, strong_pen
from integration.service.conftest import Service, each_service, service

__all__ = ["each_service", "nothing_left", "ramherd", "service", "strong_pen"]

Losses = Callable[..., None]


@pytest.fixture
def losses(record_property: Callable[[str, object], None]) -> Losses:
    """Each number is something that was lost: jobs, retries, processes, leases, ...

    losses("no inodes for a run's directory", failed_jobs=0, retries=0)
    """

    def record(fault: str, **lost: int) -> None:
        assert lost, "say what was counted"
        record_property("fault", (fault, lost))
        assert not any(lost.values()), f"{fault}: lost {lost}"

    return record


def need_root(what: str) -> None:
    if os.getuid() != 0:
        pytest.skip(f"only root can {what}")


@contextmanager
def small_disk(path: Path, options: str = "size=3m") -> Iterator[Path]:
    """A tmpfs of that size, mounted there."""
    need_root("mount a small disk")
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Until not one byte is left on that disk."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


def make_service(tmp_path: Path, *flags: str) -> Service:
    """Not started yet: its directories can be prepared first."""
    return Service(make_ramherd(tmp_path, pens()[0]), flags)
