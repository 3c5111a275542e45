"""Inside a container with a memory limit: budget, pens and leftovers stay within it.

A cgroup and two namespaces stand in for the engine: who enters sees the cgroup as the top of the
tree, and nothing of the machine's other cgroups. On v2 or on v1, whichever this machine has.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd
from ramherd.act.pens.cgroup1 import find_trees
from ramherd.act.pens.cgroup2 import try_beside
from ramherd.act.pens.selection import POLLED
from ramherd.core.policies import Policy
from ramherd.measure.cgroups import read_trees
from ramherd.system.files import remove_dirs, write_control
from ramherd.system.ids import new_id

LIMIT_BYTES = 256 << 20
TOP = "/sys/fs/cgroup"
JOIN = 'for dir in $BOX; do echo 0 > "$dir/cgroup.procs" || exit 99; done; exec "$@"'
# With what a job sees of its own cgroups, it tells where its pen is.
JOBS = [{"name": f"job-{n}", "command": "cat /proc/self/cgroup"} for n in "123"]
SETTINGS = {"RAMHERD_MEMORY": "32MiB", "RAMHERD_MAX_PARALLEL": "2", "RAMHERD_TIMEOUT": "30s"}

pytestmark = [
    pytest.mark.xdist_group("serial"),
    pytest.mark.skipif(
        os.getuid() != 0, reason="making a limited cgroup and namespaces takes root"
    ),
]


@dataclass
class Box:
    """One cgroup in each tree, by the name of the tree; and somebody else's process in it."""

    dirs: Mapping[str, Path]
    bystander: "subprocess.Popen[bytes]"

    @property
    def memory(self) -> Path:
        return self.dirs.get("memory", self.dirs["cgroup2"])

    def run(self, ramherd: Ramherd, *, read_only: bool) -> "subprocess.CompletedProcess[str]":
        """The jobs by `ramherd run`, configured by its environment alone."""
        mounts = " && ".join([f"umount -R {TOP}", *mount_commands(self.dirs, read_only=read_only)])
        return subprocess.run(
            ["sh", "-c", JOIN, "sh", "unshare", "--mount", "--cgroup", "--",
             "sh", "-c", f'{mounts} && exec "$@"', "sh",
             sys.executable, "-m", "ramherd", "run", "-", "--json"],
            env={**ramherd.env, **SETTINGS, "BOX": " ".join(map(str, self.dirs.values()))},
            text=True, input="".join(json.dumps(job) + "\n" for job in JOBS), capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip


def mount_commands(dirs: Mapping[str, Path], *, read_only: bool) -> Iterator[str]:
    """v2 alone at the top; v1 trees below it, with v2 among them on a hybrid machine."""
    alone = set(dirs) == {"cgroup2"}
    if not alone:
        yield f"mount -t tmpfs tmpfs {TOP}"
    for name in dirs:
        place = TOP if alone else f"{TOP}/{name}"
        yield f"mkdir -p {place}"
        kind = "cgroup2" if name == "cgroup2" else f"cgroup -o {name}"
        yield f"mount -t {kind} cgroup {place}"
        if read_only:
            yield f"mount -o remount,bind,ro {place}"


def make_dirs() -> dict[str, Path]:
    trees, name = read_trees(), f"ramherd-test-{new_id()}"
    if "memory" in trees.v1:
        dirs = {tree: own / name for tree, own in find_trees(trees).items()}
    else:
        beside = try_beside(trees.v2, "+memory +pids") if trees.v2 else None
        if beside is None:
            pytest.skip(f"no cgroup beside {trees.v2} can be limited")
        dirs = {"cgroup2": beside.parent / name}
    for path in dirs.values():
        path.mkdir()
    return dirs


@pytest.fixture
def box() -> Iterator[Box]:
    dirs = make_dirs()
    limit = "memory.limit_in_bytes" if "memory" in dirs else "memory.max"
    write_control(f"{dirs.get('memory', dirs['cgroup2'])}/{limit}", str(LIMIT_BYTES))
    env = {**os.environ, "BOX": " ".join(map(str, dirs.values()))}
    bystander = subprocess.Popen(["sh", "-c", JOIN, "sh", "sh", "-c", "echo; exec sleep 60"],
                                 env=env, stdout=subprocess.PIPE)  # fmt: skip
    with bystander:
        assert bystander.stdout is not None
        bystander.stdout.readline()
        yield Box(dirs, bystander)
        bystander.kill()
    assert remove_dirs([str(path) for path in dirs.values()])


def own_cgroups(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def summary_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    assert summary["done"] == len(JOBS)
    return summary


def check_budget(summary: dict[str, Any]) -> None:
    """A share of the limit, less what others in the container use: ramherd is one of them."""
    most = int(Policy().budget_share * LIMIT_BYTES)
    assert most / 2 < summary["budget_bytes"] < most


def test_a_limited_container_is_the_machine(ramherd: Ramherd, box: Box) -> None:
    """The strongest pens, inside the limit that is the budget; who else is in there is back
    where it was.
    """
    before = own_cgroups(box.bystander.pid)
    done = box.run(ramherd, read_only=False)
    summary = summary_of(done)
    assert (summary["pen"], done.stderr.count("polled")) == (ramherd.pen, 0)
    check_budget(summary)
    for result in summary["results"]:
        pen = Path(result["log"]).read_text()
        assert ":/ramherd-" in pen
        assert "/.." not in pen
    assert own_cgroups(box.bystander.pid) == before
    assert not [path for top in box.dirs.values() for path in top.iterdir() if path.is_dir()]


def test_a_read_only_tree_means_polling_and_says_so(ramherd: Ramherd, box: Box) -> None:
    """As most engines mount it: the limit is still the budget, and a line says what is better."""
    done = box.run(ramherd, read_only=True)
    summary = summary_of(done)
    assert summary["pen"] == "polling"
    check_budget(summary)
    line = done.stderr.splitlines()[0]
    assert line == f"ramherd: {POLLED}"
    assert len(line) <= 80
