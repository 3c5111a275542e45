"""`ramherd prune`, and the cap over all logs that each herd keeps."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, ours

LONG = "head -c 100000 /dev/zero"


def run_dirs(ramherd: Ramherd) -> list[Path]:
    return sorted((ramherd.state / "ramherd/runs").iterdir())


def test_the_oldest_go_and_it_is_said(ramherd: Ramherd) -> None:
    """Dry run first, then for real; what is left can still be read."""
    ramherd.json([{"name": f"old-{n}", "command": LONG} for n in range(3)], "--max-parallel", "1")
    ramherd.json([{"name": "new", "command": "echo kept"}])
    said = ramherd.run("prune", "--keep", "50KB", "--dry-run").stdout
    assert said.startswith("would remove the output of 3 runs: 3")
    assert len(run_dirs(ramherd)) == 4
    told = json.loads(ramherd.run("prune", "--keep", "50KB", "--json").stdout)
    assert (told["runs"], told["dry_run"], told["stuck"]) == (3, False, 0)
    assert told["freed_bytes"] >= 300_000
    assert ramherd.run("logs", "new").stdout == "kept\n"
    assert "removed by `ramherd prune` or log_total" in ramherd.run("logs", "old-0").stderr
    assert "old-0" in ramherd.run("jobs", "--all").stdout
    said = ramherd.run("prune", "--older", "1ms").stdout
    assert said.startswith("removed the output of 1 run, and the records of 4: ")
    assert run_dirs(ramherd) == []
    assert "no herd has run yet" in ramherd.run("logs", "new").stderr


def test_a_living_herd_keeps_its_records(ramherd: Ramherd) -> None:
    """While its owner lives; once that was killed, its runs are like any other's."""
    jobs = [{"name": "done", "command": "echo done"}, {"name": "on", "command": "sleep 300"}]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    herd = ramherd.start("run", "-", "--grace", "1s", stdin=text)
    await_(lambda: "done      done" in herd.err.read_text(), "the first job")
    prune = ("prune", "--older", "1ms", "--keep", "0")
    removed = "removed the output of 1 run: "
    await_(lambda: ramherd.run(*prune).stdout.startswith(removed), "its pen is gone, then that")
    assert len(run_dirs(ramherd)) == 1
    herd.signal(signal.SIGKILL)
    herd.wait()
    await_(lambda: not ours("RAMHERD_RUN"), "the keeper ends its runs")
    # The first one finds that the herd is over.
    assert ramherd.run("prune").stdout.startswith("removed the output of 0 runs: ")
    said = ramherd.run(*prune).stdout
    assert said.startswith("removed the output of 1 run, and the records of 2: ")
    await_(lambda: not ours(), "the keeper is gone")


def test_a_herd_keeps_log_total(ramherd: Ramherd) -> None:
    """The oldest finished runs go when the next herd starts, and a line says so."""
    ramherd.json([{"name": f"old-{n}", "command": LONG} for n in range(3)], "--max-parallel", "1")
    summary = ramherd.json([{"name": "new", "command": LONG}], "--log-total", "300KB")
    assert (
        "removed the output of the oldest run (108 KiB): log_total is 293 KiB" in (summary["lines"])
    )
    assert len(run_dirs(ramherd)) == 3
    again = ramherd.json([{"name": "next", "command": "true"}])
    assert "removed" not in again["lines"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--older", "soon"], "ramherd: --older: 'soon' is not a duration"),
        (["--older", "7"], "ramherd: --older: duration '7' has no unit"),
        (["--older", "1.5 "], "ramherd: --older: duration '1.5' has no unit"),
        (["--keep", "-1"], "ramherd: --keep: '-1' is not a size"),
        (["--", "true"], "ramherd: prune takes no command"),
    ],
)
def test_bad_input(ramherd: Ramherd, args: list[str], message: str) -> None:
    """One line and a hint, exit 2."""
    done = ramherd.run("prune", *args)
    assert done.returncode == 2
    first, hint = done.stderr.splitlines()
    assert first == message
    assert hint.startswith("  hint: ")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """8 MiB, which is little for a store and its log."""
    if os.getuid() != 0:
        pytest.skip("mounting is for root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_pruning_on_a_full_disk(ramherd: Ramherd, small_disk: Path) -> None:
    """SQLite cannot be opened there: the first logs go without it."""
    ramherd.env["XDG_STATE_HOME"] = str(small_disk)
    for name in "abc":
        ramherd.json([{"name": name, "command": "head -c 2M /dev/zero"}])
    with suppress(OSError), (small_disk / "fill").open("wb", buffering=0) as fill:
        while fill.write(b"x" * 4096) == 4096:
            pass
    refused = ramherd.run("prune", "--keep", "1GiB")
    assert (refused.returncode, "cannot use the store" in refused.stderr) == (3, True)
    done = ramherd.run("prune", "--keep", "1MiB")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("; 0 B of logs left\n")
    assert list((small_disk / "ramherd/runs").iterdir()) == []
