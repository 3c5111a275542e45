"""Whatever a run prints, ramherd's own memory and the disk stay within bounds."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from ramherd.keeper.output_log import HEAD_BYTES, RING_BYTES
from ramherd.system.procfs import parse_kib_fields

MIB = 1 << 20
CAP = HEAD_BYTES + RING_BYTES
FLOODS = {
    "much": "yes 0123456789 | head -c 5G",
    "one-line": "head -c 1G /dev/zero | tr '\\0' x",
    "random": "head -c 300M /dev/urandom",
}


def rss(pid: int, field: str = "VmRSS") -> int:
    try:
        return parse_kib_fields(Path(f"/proc/{pid}/status").read_text()).get(field, 0)
    except OSError:
        return 0


@pytest.mark.xdist_group("serial")
def test_floods_change_neither_memory_nor_disk(ramherd: Ramherd) -> None:
    """5 GB, one line of 1 GB and random bytes at once: flat within 1 MB, disk under the cap."""
    jobs = "".join(
        json.dumps({"name": name, "command": f"{command}; sleep 0.5"}) + "\n"
        for name, command in FLOODS.items()
    )
    herd = ramherd.start("run", "-", "--json", stdin=jobs)
    supervisor = herd.process.pid
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children")
    keeper = int(await_(children.read_text, "the keeper").split()[0])
    outs = ramherd.state / "ramherd/runs"
    # By then it has looked at all there is to look at.
    await_(lambda: sum(f.stat().st_size for f in outs.glob("*/out")) > CAP, "the floods are on")
    first = (rss(supervisor), rss(keeper))
    most = list(first)
    while herd.process.poll() is None:
        now = (rss(supervisor), rss(keeper))
        most = [max(pair) for pair in zip(most, now, strict=True)]
        assert all(file.stat().st_size <= CAP for file in outs.glob("*/out"))
    assert herd.process.returncode == 0
    assert most[0] - first[0] <= MIB
    assert most[1] - first[1] <= MIB
    check_kept(ramherd, json.loads(herd.out.read_text()))


def check_kept(ramherd: Ramherd, summary: dict[str, Any]) -> None:
    """The head is the beginning, the ring the end, and what was dropped is counted."""
    logs = {result["job"]: Path(result["log"]) for result in summary["results"]}
    meta = json.loads((logs["much"].parent / "meta.json").read_text())["out"]
    assert meta["bytes"] == 5 << 30
    assert meta["dropped_bytes"] == (5 << 30) - CAP
    assert logs["much"].stat().st_size == CAP
    shown = ramherd.run("logs", "one-line").stdout
    assert len(shown) == CAP + len("\n[ramherd: 960 MiB dropped here]\n")


def test_a_child_cannot_truncate_the_log(ramherd: Ramherd) -> None:
    """`> /dev/stdout` in a child, which cuts a log that is a plain file."""
    command = "echo one; sh -c 'echo two > /dev/stdout'; echo three"
    ramherd.json([{"name": "cut", "command": command}])
    assert ramherd.run("logs", "cut").stdout == "one\ntwo\nthree\n"


@pytest.mark.xdist_group("serial")
def test_fifty_runs_within_what_it_may_cost(ramherd: Ramherd) -> None:
    """Supervisor <= 26 MB, keeper <= 12 MB with fifty runs alive."""
    lines = "".join(f"{number}\n" for number in range(50))
    herd = ramherd.start("run", "--memory", "16MiB", "--", "sh", "-c", "sleep 3", stdin=lines)
    runs = ramherd.state / "ramherd/runs"
    await_(lambda: runs.is_dir() and len(os.listdir(runs)) == 50, "fifty runs")
    supervisor = herd.process.pid
    keeper = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
    assert herd.process.poll() is None
    most = dict.fromkeys((supervisor, keeper), 0)
    while herd.process.poll() is None:
        most = {pid: max(seen, rss(pid, "VmHWM")) for pid, seen in most.items()}
    assert herd.wait() == 0
    assert most[supervisor] <= 26_000_000
    assert most[keeper] <= 12_000_000
