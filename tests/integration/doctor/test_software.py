"""Programs, processes, folders, the state directory and the clock."""

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from integration.conftest import need
from ramherd.core.model import Machine
from ramherd.core.units import GIB, MIB
from ramherd.doctor.check.clock import check_clock
from ramherd.doctor.check.disk import check_directory, check_folders
from ramherd.doctor.check.processes import check_processes
from ramherd.doctor.facts import Clock, Folder, OwnDirectory, Processes, ProcRow
from ramherd.doctor.read import disk, runtimes
from ramherd.doctor.read.clis import read_clis
from ramherd.doctor.read.clock import read_clock
from ramherd.doctor.read.runtimes import ask_node
from support.roots import ELF, Root

MACHINE = Machine(16 * GIB, 12 * GIB)
FOLDER = Folder("/home/me/.claude/projects", 10 * MIB, 5, "", 0, True, False, 90 * GIB, 100 * GIB)
PLACE = OwnDirectory("/s", True, exists=True, mode=0o700, free_bytes=9 * GIB)
NOW_S = 1_800_000_000.0
CLOCK = Clock(NOW_S, True, "tsc", NOW_S - 5)


def test_what_a_program_is_made_of(root: Root) -> None:
    """By its first and last bytes, through links; its version from the package around it."""
    folder = root.path / "lib/node_modules/codex"
    root.program("codex.js", "#!/usr/bin/env node\n", "lib/node_modules/codex/bin")
    root.write("lib/node_modules/codex/package.json", '{"version": "0.166.0"}')
    (root.path / "bin/codex").symlink_to(folder / "bin/codex.js")
    root.program("gemini", "#!/usr/bin/env -S node --no-warnings=X\n")
    root.program("opencode", ELF)
    root.program("qwen", "#!/bin/sh\n")
    root.program("cursor-agent", "?", "share/cursor/versions/1.2.3-x")
    (root.path / "bin/cursor-agent").symlink_to(
        root.path / "share/cursor/versions/1.2.3-x/cursor-agent"
    )

    found = {cli.name: (cli.runtime, cli.version) for cli in read_clis(root.host())}

    assert found == {
        "claude": ("bun", ""),
        "codex": ("node", "0.166.0"),
        "gemini": ("node", ""),
        "opencode": ("native", ""),
        "qwen": ("script", ""),
        "cursor-agent": ("", "1.2.3-x"),
    }


def test_no_agent_at_all(root: Root) -> None:
    """A hint; one is enough to be quiet."""
    assert root.find("clis", "cli").level == "ok"

    assert root.find("clis", "cli", root.host(PATH="/nowhere")).level == "hint"


def test_a_relaunch_that_is_off_is_left_alone(root: Root) -> None:
    """The variable may stand in any place that is read."""
    root.program("gemini", "#!/usr/bin/env node\n")
    root.write("home/me/.bashrc", "export GEMINI_CLI_NO_RELAUNCH=true\n")

    assert "cli-relaunch" not in [finding.check for finding in root.look("clis")]


def test_a_node_that_hangs_is_not_waited_for(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and the next check goes on."""
    monkeypatch.setattr(runtimes, "ANSWER_S", 0.1)
    node = root.program("node", "#!/bin/sh\nexec /bin/sleep 60\n")

    assert ask_node(str(node), root.host()).error == "no answer within 0.1 s"


def test_a_real_node_tells_the_heap_it_was_given(root: Root) -> None:
    """48 MiB more than was set; options that it does not take are its own words."""
    node = need("node", "nodejs")

    given = ask_node(node, root.host(NODE_OPTIONS="--max-old-space-size=512"))
    refused = ask_node(node, root.host(NODE_OPTIONS="--no-such-option"))

    assert (given.heap_bytes, given.error) == ((512 + 48) * MIB, "")
    assert "NODE_OPTIONS" in refused.error


def test_the_heap_that_node_takes_by_itself_is_fine(root: Root) -> None:
    """Half of the RAM on a small machine, and 48 MiB more are reported."""
    root.write("proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1887436 kB\n")
    levels = []
    for heap in ((1024 + 48) * MIB, (1200 + 48) * MIB):
        root.program("node", f"#!/bin/sh\necho '[\"v22.1.0\", {heap}]'\n")
        levels.append(root.find("heap", "heap").level.value)

    assert levels == ["ok", "warning"]


def test_a_node_is_asked_once(root: Root) -> None:
    """Two names of one file are one node."""
    root.program("node", f"#!/bin/sh\necho x >> {root.path}/asked\necho '[\"v1\", 4000000000]'\n")
    (root.path / "bin2").mkdir()
    (root.path / "bin2/node").symlink_to(root.path / "bin/node")

    root.look("heap")

    assert (root.path / "asked").read_text() == "x\n"


def test_running_agents_are_counted(root: Root) -> None:
    """With what they hold; two of one server are copies."""
    root.rows = [ProcRow(70, "claude", "agent", 8 * MIB)]
    root.rows += [ProcRow(pid, "context7", "mcp", 4 * MIB, "node\0mcp.js") for pid in (71, 72)]

    assert "1 agent and 2 MCP servers" in root.find("processes", "running").what
    assert root.find("processes", "mcp-copies").level == "hint"


@pytest.mark.parametrize(("row", "check", "level"), [
    (ProcRow(1, "claude", "agent", 12 * GIB), "running", "warning"),
    (ProcRow(1, "x", "mcp", MIB, orphan="its stdin has no other end"), "orphans", "warning"),
    (ProcRow(1, "claude", "agent", MIB, growth_bytes_per_hour=GIB), "growing", "warning"),
    (ProcRow(1, "claude", "agent", MIB, growth_bytes_per_hour=MIB), "growing", "ok"),
    (ProcRow(1, "x", "mcp", MIB), "mcp-copies", "ok"),
])  # fmt: skip
def test_processes(row: ProcRow, check: str, level: str) -> None:
    """Much memory, proved orphans and growth are warnings."""
    found = {finding.check: finding for finding in check_processes(Processes(MACHINE, (row,)))}

    assert found[check].level == level
    assert sum(finding.level != "ok" for finding in found.values()) == (level != "ok")


@pytest.mark.parametrize(("change", "level"), [
    ({}, "ok"),
    ({"size_bytes": 2 * GIB}, "hint"),
    ({"size_bytes": 20 * GIB}, "warning"),
    ({"size_bytes": 3 * GIB, "largest_bytes": 3 * GIB, "largest": "/x"}, "warning"),
    ({"size_bytes": 300 * MIB, "on_tmpfs": True}, "warning"),
    ({"size_bytes": 2 * GIB, "disk_free_bytes": 10 * MIB}, "problem"),
])  # fmt: skip
def test_folders_that_grow(change: dict[str, object], level: str) -> None:
    """Large, in RAM, or on a disk that is full."""
    (found,) = check_folders([replace(FOLDER, **change)])  # type: ignore[arg-type]

    assert found.level == level
    assert bool(found.command) == (level != "ok")


def test_folders_are_measured_the_biggest_first(root: Root) -> None:
    """What they take on disk; links are not followed."""
    root.write("home/me/.codex/sessions/a/b.jsonl", b"x" * 5000)
    root.write("home/me/.claude/projects/p/s.jsonl", b"x" * 90_000)
    (root.home / ".codex/sessions/link").symlink_to(root.home / ".claude/projects/p/s.jsonl")

    found = disk.read_folders(root.host())

    assert [Path(folder.path).name for folder in found] == ["projects", "sessions"]
    assert [folder.files for folder in found] == [1, 1]
    assert found[0].largest.endswith("s.jsonl")


def test_folders_are_measured_for_a_short_time(root: Root) -> None:
    """What was not looked at is said."""
    for number in range(300):
        root.write(f"home/me/.claude/projects/{number}", "x")
    ticks = iter(range(1000))

    (found,) = disk.read_folders(root.host(), clock=lambda: float(next(ticks)))

    assert (found.is_whole, found.files) == (False, 256)
    (finding,) = check_folders([found])
    assert "at least" in finding.what


@pytest.mark.parametrize(("change", "level"), [
    ({}, "ok"),
    ({"exists": False, "mode": 0}, "ok"),
    ({"is_ours": False}, "problem"),
    ({"is_writable": False}, "problem"),
    ({"file_system": "nfs4"}, "problem"),
    ({"free_bytes": MIB}, "problem"),
    ({"mode": 0o755}, "warning"),
    ({"mode": 0o500}, "problem"),
    ({"free_bytes": 500 * MIB}, "warning"),
    ({"file_system": "tmpfs"}, "hint"),
    ({"file_system": "tmpfs", "keeps": False}, "ok"),
])  # fmt: skip
def test_directories_of_ours(change: dict[str, object], level: str) -> None:
    """Usable, private, with room, and not on a network."""
    assert check_directory(replace(PLACE, **change)).level == level  # type: ignore[arg-type]


def test_a_store_that_is_none(root: Root, tmp_path: Path) -> None:
    """A problem with the way out; looking makes no directory."""
    assert root.find("state", "store").level == "ok"
    state = tmp_path / "xdg_state_home/ramherd"
    assert not state.exists()
    state.mkdir(parents=True, mode=0o700)
    with closing(sqlite3.connect(state / "ramherd.db")) as db:
        db.execute("CREATE TABLE a (b)")
    assert root.find("state", "store").level == "ok"
    (state / "ramherd.db").write_bytes(b"not a database at all" * 100)

    found = root.find("state", "store")

    assert found.level == "problem"
    assert "ramherd up " in found.command


def test_a_state_directory_open_to_others(root: Root, tmp_path: Path) -> None:
    """A warning with a fix."""
    state = tmp_path / "xdg_state_home/ramherd"
    state.mkdir(parents=True)
    state.chmod(0o755)

    found = root.find("state", "state")

    assert found.level == "warning"
    assert found.fix is not None


def test_logs_above_what_is_kept(root: Root, tmp_path: Path) -> None:
    """A hint; the next herd removes them anyway."""
    from ramherd.doctor.examine import THEMES, HostFacts, check_theme

    assert root.find("state", "logs").level == "ok"
    logs = tmp_path / "xdg_state_home/ramherd/runs/R"
    logs.mkdir(parents=True)
    (logs / "out").write_bytes(b"x" * 10_000)
    found = check_theme("state", THEMES["state"], HostFacts(root.host(), logs_keep_bytes=5000))

    assert [finding.level for finding in found if finding.check == "logs"] == ["hint"]


@pytest.mark.parametrize(("change", "level"), [
    ({}, "ok"),
    ({"is_synchronised": None, "newest_s": None}, "ok"),
    ({"is_synchronised": False}, "hint"),
    ({"newest_s": NOW_S + 3600}, "warning"),
    ({"now_s": 86_400.0}, "problem"),
])  # fmt: skip
def test_the_clock(change: dict[str, object], level: str) -> None:
    """Set, kept right, and never gone back."""
    found, _source = check_clock(replace(CLOCK, **change))  # type: ignore[arg-type]

    assert found.level == level


def test_a_clock_that_went_back_is_seen_in_our_files(root: Root, tmp_path: Path) -> None:
    """The store's own time is compared with now."""
    store = tmp_path / "ramherd.db"
    store.write_text("")
    os.utime(store, (time.time() + 500, time.time() + 500))

    found, _source = check_clock(read_clock(root.host(), tmp_path))

    assert found.level == "warning"
