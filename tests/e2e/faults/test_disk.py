"""Disks: full, read-only, without inodes; logs that would fill them."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, fill, make_service, small_disk
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from integration.service.conftest import Service, finish
from ramherd.keeper.log_quota import LEAST_BYTES
from ramherd.measure.disk_usage import read_file_bytes


@contextmanager
def service_on_disk(tmp_path: Path, options: str) -> Iterator[Service]:
    """Its state directory is a file system of its own."""
    with small_disk(tmp_path / "state", options):
        made = make_service(tmp_path)
        made.start()
        yield made
        finish(made)


@pytest.fixture
def small_service(tmp_path: Path) -> Iterator[Service]:
    with service_on_disk(tmp_path, "size=3m") as made:
        yield made


@pytest.fixture
def ballasted_service(tmp_path: Path) -> Iterator[Service]:
    """Its ballast, a twentieth of the disk, has room for a submission."""
    with service_on_disk(tmp_path, "size=16m") as made:
        yield made


RELEASED = " is full: released "
RESTORED = " has free space again: "


def test_a_full_disk_costs_no_job(small_service: Service, losses: Losses) -> None:
    """Also when the ballast is used up: runs go on, a submission is refused with one line, and
    what ended is written afterwards.
    """
    service = small_service
    herd = service.submit({"name": "a", "command": "sleep 3; exit 5"})
    service.await_state("a", "running")
    fillers = [service.ramherd.state / name for name in ("filler", "more")]
    fill(fillers[0])
    await_(lambda: RELEASED in service.said, "the ballast is released")
    fill(fillers[1])
    await_(lambda: not ours("RAMHERD_RUN"), "the run ends by itself")
    refused = service.ramherd.run("submit", "--", "echo", stdin="x\n")
    assert refused.returncode == 3
    assert "disk is full" in refused.stderr or "No space left" in refused.stderr
    assert "Traceback" not in refused.stderr
    for filler in fillers:
        filler.unlink()
    service.client.wait(herd)
    assert [run["exit_code"] for run in service.job("a")["runs"]] == [5]
    service.client.wait(service.submit({"name": "b", "command": "true"}))
    losses("the disk is full while a job runs", runs_repeated=len(service.job("a")["runs"]) - 1)


def test_the_ballast_lets_the_store_write_on_a_full_disk(
    ballasted_service: Service, losses: Losses
) -> None:
    """How a job ended is in the store while not a byte is free for others; starts wait, with the
    reason, until there is room.
    """
    service = ballasted_service
    ballast = service.ramherd.state / "ramherd/ballast"
    assert ballast.stat().st_blocks > 0
    herd = service.submit({"name": "first", "command": "sleep 1; exit 5"})
    service.await_state("first", "running")
    filler = service.ramherd.state / "filler"
    fill(filler)
    await_(lambda: RELEASED in service.said, "the ballast is released")
    assert ballast.stat().st_blocks == 0
    service.await_state("first", "failed")
    assert service.rows("SELECT exit_code FROM runs") == [(5,)]
    queued = service.submit({"name": "later", "command": "true"})
    await_(lambda: service.job("later")["reason"]["why"] == "disk_full", "it says why it waits")
    doctor = service.ramherd.run("doctor")
    assert "released" in doctor.stdout
    filler.unlink()
    service.client.wait(queued)
    service.client.wait(herd)
    await_(lambda: RESTORED in service.said, "the ballast is back")
    kinds = [kind for (kind,) in service.rows("SELECT kind FROM events")]
    assert kinds.count("ballast_released") == kinds.count("ballast_restored") == 1
    wrong = [service.state("first") != "failed", service.state("later") != "done"]
    losses("the disk is full, and the ballast is there", jobs=sum(wrong))


def test_what_finished_on_a_full_disk_is_known_after_a_crash(
    small_service: Service, tmp_path: Path, losses: Losses
) -> None:
    """The store could not take how the jobs ended, service and keeper are killed: the status
    files say it.
    """
    service, begun = small_service, tmp_path / "begun"
    job = f"echo >> {begun}; sleep 1; echo done"
    herd = service.submit(
        {"name": "good", "command": f"{job}; exit 0"},
        {"name": "bad", "command": f"{job}; exit 5"},
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 2, "both run")
    service.await_state("good", "running")
    service.await_state("bad", "running")
    filler = service.ramherd.state / "filler"
    fill(filler)
    await_(lambda: not ours("RAMHERD_RUN"), "they end by themselves")
    await_(lambda: "disk is full" in service.said, "the store does not take it")
    service.kill_with_keepers()
    filler.unlink()
    service.start()
    service.client.wait(herd)
    runs = [run for name in ("good", "bad") for run in service.job(name)["runs"]]
    assert [run["exit_code"] for run in runs] == [0, 5]
    losses(
        "a full disk, then kill -9 of service and keeper",
        runs_repeated=len(begun.read_text().splitlines()) - 2,
    )


MIB = 1 << 20
TOTAL_BYTES = 24 * MIB
TOTAL = "--log-total=24MiB"
# As fast as it can, on both streams.
FLOOD = "yes 0123456789012345 & yes 0123456789012345 >&2"


def output_bytes(ramherd: Ramherd) -> int:
    """On disk, of all runs."""
    runs = ramherd.state / "ramherd/runs"
    return sum(
        read_file_bytes(f"{folder}/{name}")
        for folder, _dirs, files in os.walk(runs)
        for name in {"out", "err"}.intersection(files)
    )


@pytest.fixture
def noisy_service(tmp_path: Path) -> Iterator[Service]:
    made = make_service(tmp_path, TOTAL)
    made.start()
    yield made
    finish(made)


@pytest.mark.xdist_group("serial")
def test_jobs_that_print_without_end_stay_within_log_total(
    noisy_service: Service, losses: Losses
) -> None:
    """Two herds and a service in one state directory, all at full speed; what had finished before
    goes first, and no record goes.
    """
    service, ramherd = noisy_service, noisy_service.ramherd
    old = [{"name": f"old-{n}", "command": "head -c 5M /dev/zero"} for n in range(2)]
    ramherd.json(old, "--own", TOTAL)
    assert output_bytes(ramherd) == 10 * MIB
    flood = json.dumps({"name": "flood", "command": FLOOD}) + "\n"
    herds = [
        ramherd.start("run", "-", "--own", TOTAL, "--grace", "1s", stdin=flood) for _ in range(2)
    ]
    service.submit({"name": "flood", "command": FLOOD})
    await_(lambda: len(ours("RAMHERD_RUN")) >= 6, "all of them print")
    slack, most = 6 * LEAST_BYTES, 0
    deadline = time.monotonic() + 6.0
    while time.monotonic() < deadline:
        most = max(most, output_bytes(ramherd))
        time.sleep(0.01)
    logs = list((ramherd.state / "ramherd/runs").glob("*/out"))
    printed = [json.loads((log.parent / "meta.json").read_text())["out"]["bytes"] for log in logs]
    assert sorted(printed)[-3] > TOTAL_BYTES
    kinds = [kind for (kind,) in service.rows("SELECT kind FROM events")]
    assert "logs_removed" in kinds
    assert kinds.count("logs_smaller") <= 3
    for herd in herds:
        herd.signal(signal.SIGINT)
        assert herd.wait() == 130
    records = service.rows("SELECT count(*) FROM jobs WHERE name LIKE 'old-%'")
    losses(
        "jobs that print without end",
        bytes_above_the_cap=max(most - TOTAL_BYTES - slack, 0),
        records=2 - records[0][0],
    )


def test_verbs_that_read_work_on_a_full_disk(tmp_path: Path, losses: Losses) -> None:
    """Not even SQLite's own files can be made; what has to write is refused in one line."""
    ramherd = make_ramherd(tmp_path, pens()[0])
    with small_disk(tmp_path / "state"):
        ramherd.json([{"name": "a", "command": "echo printed"}])
        fill(ramherd.state / "filler")
        jobs, logs = ramherd.run("jobs", "--all"), ramherd.run("logs", "a")
        events, doctor = ramherd.run("events"), ramherd.run("doctor")
        session = ramherd.run("exec", "--", "true")
        await_(lambda: not ours(), "what it began has ended")
    assert "exit status 0" in events.stdout
    assert ".broken" not in doctor.stdout
    assert (session.returncode, "the disk is full" in session.stderr) == (3, True)
    verbs = (jobs, logs, events, doctor, session)
    assert not any("Traceback" in one.stderr for one in verbs)
    wrong = ["done" not in jobs.stdout, logs.stdout != "printed\n"]
    losses("verbs that read, on a full disk", verbs=sum(wrong))


def test_prune_makes_room_on_a_disk_that_is_full(small_service: Service, losses: Losses) -> None:
    """The store can be opened and not written, and the herd that filled the disk is not over: what
    its finished runs printed goes first, then the store has the rest.
    """
    service = small_service
    printing = "head -c 700000 /dev/zero | tr '\\0' x"
    herd = service.submit(
        {"name": "a", "command": printing},
        {"name": "b", "command": "sleep 3; exit 5", "after": ["a"]},
    )
    service.await_state("b", "running")
    for name in ("filler", "more"):
        fill(service.ramherd.state / name)
        await_(lambda: RELEASED in service.said, "the ballast is released")
    await_(lambda: not ours("RAMHERD_RUN"), "the run ends by itself")
    pruned = service.ramherd.run("prune", "--keep", "0")
    assert pruned.returncode == 0, pruned.stderr
    assert pruned.stdout.startswith("removed the output of ")
    service.client.wait(herd)
    codes = [run["exit_code"] for name in ("a", "b") for run in service.job(name)["runs"]]
    assert codes == [0, 5]
    losses("prune on a full disk", runs_repeated=len(codes) - 2)
