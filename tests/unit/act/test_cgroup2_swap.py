"""Swap of cgroup v2 pens, on files that look like a cgroup."""

import errno
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.act.pens import cgroup2
from ramherd.act.pens.cgroup2 import Cgroup2Memory
from ramherd.core.units import MIB

FILES = {
    "memory.stat": "anon 104857600\nshmem 0\nkernel 4194304\nfile 0\n",
    "memory.peak": "209715200\n",
    "memory.current": "0\n",
    "memory.events": "",
    "memory.events.local": "oom 0\noom_kill 0\n",
    "memory.high": "max",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.swap.current": "1048576\n",
    "memory.reclaim": "",
}


class Cgroup:
    """A directory, and all that was written to it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.written: list[tuple[str, str]] = []
        self.refused: dict[str, int] = {}
        for name, text in FILES.items():
            (path / name).write_text(text)
        monkeypatch.setattr(cgroup2, "write_control", self.write)
        monkeypatch.setattr(cgroup2, "try_control", self.try_write)

    def write(self, path: str, value: str) -> None:
        self.written.append((Path(path).name, value))
        if value in self.refused:
            raise OSError(self.refused[value], "refused", path)

    def try_write(self, path: str, value: str) -> bool:
        try:
            self.write(path, value)
        except OSError:
            return False
        return True


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cgroup:
    return Cgroup(tmp_path, monkeypatch)


@pytest.fixture
def memory(cgroup: Cgroup) -> Iterator[Cgroup2Memory]:
    with closing(Cgroup2Memory(cgroup.path)) as made:
        yield made


def test_swap_is_open_only_while_cold_memory_is_moved(
    cgroup: Cgroup, memory: Cgroup2Memory
) -> None:
    """For as much as is moved, beside what is there already; page cache is left alone."""
    assert memory.can_reclaim
    memory.reclaim(64 * MIB)

    assert cgroup.written == [
        ("memory.swap.max", str(65 * MIB)),
        ("memory.reclaim", f"{64 * MIB} swappiness=200"),
        ("memory.swap.max", "0"),
    ]


def test_an_older_kernel_is_not_told_what_to_leave_alone(
    cgroup: Cgroup, memory: Cgroup2Memory
) -> None:
    """It refuses the word, and is asked without."""
    cgroup.refused[f"{MIB} swappiness=200"] = errno.EINVAL
    memory.reclaim(MIB)

    assert cgroup.written[2:] == [("memory.reclaim", str(MIB)), ("memory.swap.max", "0")]


def test_less_that_is_cold_than_was_asked_for_is_an_answer(
    cgroup: Cgroup, memory: Cgroup2Memory
) -> None:
    """EAGAIN: the kernel is not asked again for the same."""
    cgroup.refused[f"{MIB} swappiness=200"] = errno.EAGAIN
    memory.reclaim(MIB)

    assert [name for name, _value in cgroup.written].count("memory.reclaim") == 1
    assert cgroup.written[-1] == ("memory.swap.max", "0")


def test_what_is_in_swap_is_read_once_something_was_moved(memory: Cgroup2Memory) -> None:
    """It is no part of what is used."""
    before = memory.read(1)
    memory.reclaim(MIB)
    after = memory.read(1)

    assert (before.swapped_bytes, after.swapped_bytes) == (0, MIB)
    assert before.used_bytes == after.used_bytes == 104 * MIB


def test_a_kernel_without_swap_or_reclaim_cannot(cgroup: Cgroup, memory: Cgroup2Memory) -> None:
    """Before 5.19, or without swap accounting. A pen that is gone is an ordinary answer."""
    for name in ("memory.reclaim", "memory.swap.current"):
        (cgroup.path / name).unlink()
        assert not memory.can_reclaim
    memory.reclaim(MIB)

    assert cgroup.written == [("memory.swap.max", "0")]


def test_a_grant_and_a_limit_allow_no_swap_but_that_of_a_fleet_does(cgroup: Cgroup) -> None:
    """The pens of a fleet are each limited by themselves."""
    with closing(Cgroup2Memory(cgroup.path)) as pen:
        pen.set_limit(MIB)
    with closing(Cgroup2Memory(cgroup.path, may_swap=True)) as fleet:
        fleet.set_limit(2 * MIB)

    assert cgroup.written == [
        ("memory.max", str(MIB)), ("memory.swap.max", "0"), ("memory.max", str(2 * MIB)),
    ]  # fmt: skip
