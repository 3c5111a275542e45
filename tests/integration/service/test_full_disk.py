"""A disk that fills up while the service runs: a real one, of three megabytes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import await_, make_ramherd, ours, pens
from integration.service.conftest import Service, finish


@pytest.fixture
def small_service(tmp_path: Path) -> Iterator[Service]:
    """Its state directory is a file system of its own."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    state = tmp_path / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(state)], check=True)
    try:
        made = Service(make_ramherd(tmp_path, pens()[0]))
        made.start()
        yield made
        finish(made)
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


def test_a_full_disk_costs_no_job(small_service: Service) -> None:
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
