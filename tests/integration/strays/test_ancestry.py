"""The recorder: what an agent had below it, for when it is gone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramherd.core.model import ProcId
from ramherd.strays import ancestry
from ramherd.strays.scan import read_recorded
from ramherd.system.proc_stat import read_start_ticks


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def test_a_tree_is_noted_and_read_again(tmp_path: Path, child: int) -> None:
    """With its session, and the subagents that are no processes."""
    noted = ancestry.record_tree(
        str(tmp_path), os.getpid(), agent="claude", session="s 1", subagents=2
    )

    found = read_recorded(str(tmp_path))[ProcId(child, read_start_ticks(child) or 0)]

    assert noted >= 1
    assert (found.agent, found.owner.pid, found.session) == ("claude", os.getpid(), "s1")
    assert found.subagents == 2
    assert (tmp_path / "ancestry").stat().st_mode & 0o777 == 0o600


def test_a_process_that_is_gone_has_nothing_to_note(tmp_path: Path) -> None:
    """A hook may be later than its agent."""
    assert ancestry.record_tree(str(tmp_path), 1 << 22, agent="claude") == 0
    assert read_recorded(str(tmp_path)) == {}


def test_notes_of_another_boot_and_broken_lines_are_no_notes(tmp_path: Path) -> None:
    """A pid means something only where it was given."""
    here = ancestry.read_place()
    lines = ["other/pid:[1] claude - 0 1:1 2:2", f"{here} claude - 0 1:1 2:", f"{here} cla", "\xff"]
    (tmp_path / "ancestry").write_text("\n".join([*lines, f"{here} codex - 0 5:5 6:6"]))

    assert set(read_recorded(str(tmp_path))) == {ProcId(5, 5), ProcId(6, 6)}


def test_a_server_stays_one_although_a_hook_does_not_know_it(tmp_path: Path) -> None:
    """Only a scan sees who speaks over two pipes."""
    for servers in ({(9, 1)}, set()):
        ancestry.append(str(tmp_path), ("codex", "", 0, (5, 7), [(8, 1), (9, 1)], servers))

    found = read_recorded(str(tmp_path))

    assert {proc.pid: one.is_server for proc, one in found.items()} == {
        5: False, 8: False, 9: True,
    }  # fmt: skip


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of its size at most; the newest notes are kept."""
    monkeypatch.setattr(ancestry, "LIMIT_BYTES", 1000)
    for number in range(100):
        ancestry.append(str(tmp_path), ("claude", "", 0, (number + 1, 7), [(9, number)], set()))

    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 1200
    assert ProcId(100, 7) in read_recorded(str(tmp_path))


def test_the_recorder_loads_nothing_slow(tmp_path: Path) -> None:
    """A hook pays for it on every tool call: no module that takes longer than reading /proc."""
    code = "import os, sys; import ramherd.strays.ancestry; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(ancestry.__file__).parents[2])},
    )  # fmt: skip

    slow = {
        "ctypes",
        "dataclasses",
        "inspect",
        "json",
        "pathlib",
        "socket",
        "sqlite3",
        "subprocess",
    }
    loaded = set(done.stdout.split())
    assert not loaded & slow
    assert {name for name in loaded if name.startswith("ramherd.")} <= {
        "ramherd.core",
        "ramherd.core.errors",
        "ramherd.core.procid",
        "ramherd.core.units",
        "ramherd.strays",
        "ramherd.strays.ancestry",
        "ramherd.system",
        "ramherd.system.files",
        "ramherd.system.proc_stat",
        "ramherd.system.procfs",
    }
