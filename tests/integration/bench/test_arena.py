"""The benchmark's arena: its counts are the kernel's, and nothing of it stays."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.replay.arena import Arena, make_arena
from bench.replay.kernel_log import KernelLog
from bench.replay.meminfo import render_meminfo
from bench.replay.tools import enter
from ramherd.core.errors import RamherdError
from ramherd.core.units import KIB, MIB

HOG = [sys.executable, "-c", "x = b'x' * (200 << 20)"]


@pytest.fixture
def arena() -> Iterator[Arena]:
    try:
        made = make_arena(64 * MIB)
    except RamherdError as error:
        pytest.skip(str(error))
    yield made
    made.remove()
    assert not made.path.exists()


def test_a_kill_is_counted_once(arena: Arena) -> None:
    """By the cgroup's own counter and by the kernel's log."""
    log = KernelLog(arena.name)
    assert subprocess.run(enter(HOG, arena.path, None), check=False).returncode == -9

    arena.look_for_kills()
    log.read_on()
    log.close()
    assert (arena.seen_kills, log.kills) == (1, 1)


def test_a_kill_in_a_cgroup_that_is_gone_is_counted(arena: Arena) -> None:
    """Pens go with their runs; the log still names the victim's."""
    pen = arena.path / "pen"
    pen.mkdir()
    log = KernelLog(arena.name)
    assert subprocess.run(enter(HOG, pen, None), check=False).returncode == -9
    pen.rmdir()

    log.read_on()
    log.close()
    assert log.kills == 1


def test_what_is_left_is_ended_with_the_arena(arena: Arena) -> None:
    """Also in cgroups below it."""
    pen = arena.path / "pen"
    pen.mkdir()
    sleeper = subprocess.Popen(enter(["sleep", "600"], pen, None))
    while sleeper.pid not in arena.pids():
        assert sleeper.poll() is None

    arena.remove()

    assert sleeper.wait(10) == -9
    assert not arena.path.exists()


def test_a_tool_sees_the_arenas_meminfo_alone(arena: Arena, tmp_path: Path) -> None:
    """In a mount namespace of its own: everybody else sees the machine's."""
    path = tmp_path / "meminfo"
    path.write_text(render_meminfo(64 * MIB, 0))

    command = enter(["head", "-n", "1", "/proc/meminfo"], arena.path, path)
    seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert seen.split() == ["MemTotal:", str(64 * MIB // KIB), "kB"]
    assert Path("/proc/meminfo").read_text().splitlines()[0] != seen.strip()


def test_an_arena_larger_than_the_machine_is_refused(arena: Arena) -> None:
    """Its limit would not be what stops a tool."""
    with pytest.raises(RamherdError, match="the benchmark needs 1024 TiB of memory"):
        make_arena(1 << 50)
