"""Disks: full, read-only, without inodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, fill, make_service, small_disk
from integration.conftest import await_, ours
from integration.service.conftest import Service, finish


@pytest.fixture
def small_service(tmp_path: Path) -> Iterator[Service]:
    """Its state directory is a file system of its own."""
    with small_disk(tmp_path / "state"):
        made = make_service(tmp_path)
        made.start()
        yield made
        finish(made)


def test_a_full_disk_costs_no_job(small_service: Service, losses: Losses) -> None:
    """Runs go on, a submission is refused with one line, and what ended is written afterwards."""
    service = small_service
    herd = service.submit({"name": "a", "command": "sleep 1; exit 5"})
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.await_state("a", "running")
    filler = service.ramherd.state / "filler"
    fill(filler)
    await_(lambda: "disk is full: nothing starts until that is over" in service.said, "it is told")
    await_(lambda: not ours("RAMHERD_RUN"), "the run ends by itself")
    refused = service.ramherd.run("submit", "--", "echo", stdin="x\n")
    assert (refused.returncode, "disk is full" in refused.stderr) == (3, True)
    assert "Traceback" not in refused.stderr
    filler.unlink()
    service.client.wait(herd)
    assert [run["exit_code"] for run in service.job("a")["runs"]] == [5]
    service.client.wait(service.submit({"name": "b", "command": "true"}))
    losses("the disk is full while a job runs", runs_repeated=len(service.job("a")["runs"]) - 1)


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
