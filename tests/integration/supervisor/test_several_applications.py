"""Several applications on one machine share its memory. A limited cgroup is the machine."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_, make_ramherd
from ramherd.core.units import MIB
from ramherd.measure.cgroups import parse_file_bytes_v1, parse_flat, read_trees
from ramherd.sim import agent
from ramherd.system.files import remove_dirs, write_control
from ramherd.system.ids import new_id

LIMIT_BYTES = 1024 * MIB
BUDGET_BYTES = int(0.8 * LIMIT_BYTES)
# Holds what it was told after a line on its standard input, until that is closed.
HOG = """
import sys
print("ready", flush=True); sys.stdin.readline()
block = bytearray(int(sys.argv[1]) << 20); block[::4096] = b"x" * len(block[::4096])
print("full", flush=True); sys.stdin.read()
"""
JOIN = 'echo 0 > "$BOX/cgroup.procs" && exec "$@"'
TREES = read_trees()
AGENT = (sys.executable, "-I", "-S", agent.__file__)

pytestmark = [
    pytest.mark.xdist_group("serial"),
    pytest.mark.skipif(
        os.getuid() != 0 or "memory" not in TREES.v1, reason="needs a limited cgroup v1 of its own"
    ),
]


@dataclass
class Box:
    """A memory cgroup with a limit; everything of a test runs in it."""

    dir: Path
    ramherd: Ramherd

    def start(self, *command: str, **streams: Any) -> "subprocess.Popen[str]":
        env = {**self.ramherd.env, "BOX": str(self.dir)}
        argv = ["sh", "-c", JOIN, "sh", *command]
        return subprocess.Popen(argv, env=env, text=True, **streams)

    def run(self, jobs: list[dict[str, Any]], name: str) -> "subprocess.Popen[str]":
        path = self.dir_of_files / f"{name}.jsonl"
        path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
        scales = ("--time-scale", "4", "--size-scale", "4", "--max-cpu-pressure", "none")
        command = (sys.executable, "-m", "ramherd", "run", str(path), "--json", *scales)
        return self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @property
    def dir_of_files(self) -> Path:
        return self.ramherd.state.parent

    @property
    def used_bytes(self) -> int:
        usage = int((self.dir / "memory.usage_in_bytes").read_text())
        return usage - parse_file_bytes_v1((self.dir / "memory.stat").read_bytes())

    @property
    def oom_kills(self) -> int:
        return parse_flat((self.dir / "memory.oom_control").read_text())["oom_kill"]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    path = TREES.v1["memory"] / f"box-{new_id()}"
    path.mkdir()
    write_control(f"{path}/memory.limit_in_bytes", str(LIMIT_BYTES))
    try:
        yield Box(path, make_ramherd(tmp_path, "auto"))
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        assert remove_dirs([str(path)])


def agents(number: int, tmp_path: Path, size: str, seconds: float) -> list[dict[str, Any]]:
    return [
        {
            "name": f"agent-{n}",
            "command": (command := [
                *AGENT, "--flat", size, "--for", str(seconds),
                "--state", str(tmp_path / new_id()), "--checkpoint", "0",
            ]),
            "resume_command": command,
        }
        for n in range(number)
    ]  # fmt: skip


def finish(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert out, err
    summary: dict[str, Any] = json.loads(out)
    return summary


def first_start_s(summary: dict[str, Any], ramherd: Ramherd) -> float:
    text = ramherd.run("events", "--herd", summary["herd"], "--json").stdout
    events = [json.loads(line) for line in text.splitlines()]
    return min(float(event["at_s"]) for event in events if event["kind"] == "run_started")


def test_two_herds_a_session_and_a_hog_share_the_memory(box: Box, tmp_path: Path) -> None:
    """The second herd and the session get their share while the first herd still has work, the
    debt that a hog makes is paid within ten seconds, nobody is starved, and the kernel kills
    nobody.
    """
    hog = box.start(sys.executable, "-c", HOG, "250", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert hog.stdin is not None
    assert hog.stdout is not None
    hog.stdout.readline()
    first = box.run(agents(14, tmp_path, "110MiB", 4.0), "first")
    await_(lambda: box.used_bytes > 400 * MIB, "the first herd has filled most of it")
    begun = time.time()
    second = box.run(agents(4, tmp_path, "110MiB", 2.0), "second")
    hold = [*AGENT, "--flat", "60MiB", "--for", "1"]
    session = box.start(
        sys.executable, "-m", "ramherd", "exec", "--memory", "80MiB", "--", *hold,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    await_(lambda: box.used_bytes > 550 * MIB, "both are at work")
    hog.stdin.write("\n")
    hog.stdin.flush()
    hog.stdout.readline()
    # Supervisors and keepers are outside of the leases, and growth of a quantum is under way.
    mark = BUDGET_BYTES + 64 * MIB
    await_(lambda: box.used_bytes <= mark, "the debt is paid", 10.0)
    hog.stdin.close()
    assert hog.wait(20) == 0
    hog.stdout.close()
    assert session.wait(60) == 0
    summaries = [finish(first), finish(second)]
    assert [summary["done"] for summary in summaries] == [14, 4]
    assert sum(summary["oom_kills"] for summary in summaries) == 0
    assert box.oom_kills == 0
    assert first_start_s(summaries[1], box.ramherd) - begun < 10
