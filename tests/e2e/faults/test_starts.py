"""Runs cannot be prepared: no inodes, no bytes, a read-only directory, a directory or a cgroup
that somebody removed, no descriptors. No job pays for it.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from e2e.faults.conftest import Losses, fill, need_root, small_disk
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from integration.service.conftest import Service, each_service, finish

__all__ = ["each_service"]

JOBS = 20
Break = Callable[[Path], Callable[[], None]]


def remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(path)], check=True)


def use_up_inodes(runs: Path) -> Callable[[], None]:
    remount(runs, "nr_inodes=4")
    return lambda: remount(runs, "nr_inodes=10k")


def make_read_only(runs: Path) -> Callable[[], None]:
    remount(runs, "ro")
    return lambda: remount(runs, "rw")


def use_up_bytes(runs: Path) -> Callable[[], None]:
    fill(runs / "filler")
    return (runs / "filler").unlink


FAULTS = {
    "No space left on device": use_up_inodes,
    "Read-only file system": make_read_only,
    "no bytes": use_up_bytes,
}


def sentence(runs: Path, fault: str) -> str:
    error = "No space left on device" if fault == "no bytes" else fault
    return f"cannot prepare a run in {runs}: {error}: no job starts until this is resolved"


@pytest.fixture(params=pens())
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ramherd]:
    """`runs` is a file system of its own: the store's does not break with it."""
    with small_disk(tmp_path / "state/ramherd/runs", "size=2m"):
        made = make_ramherd(tmp_path, str(request.param))
        made.env["COLUMNS"] = "500"  # `ramherd jobs` cuts its reasons to the width of the screen
        yield made


@pytest.fixture
def small_service(home: Ramherd) -> Iterator[Service]:
    made = Service(home)
    made.start()
    yield made
    finish(made)


def count_losses(service: Service) -> dict[str, int]:
    jobs = [service.client.job(one["id"]) for one in service.client.jobs()]
    return {
        "failed_jobs": sum(job["state"] == "failed" for job in jobs),
        "retries": sum(job["failures"] for job in jobs),
        "extra_runs": sum(max(len(job["runs"]) - 1, 0) for job in jobs),
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_waits_until_runs_can_be_prepared(
    small_service: Service, fault: str, losses: Losses
) -> None:
    """One event, the reason at each queued job, and then all of them run, once."""
    service, runs = small_service, small_service.ramherd.state / "ramherd/runs"
    mend = FAULTS[fault](runs)
    herd = service.submit(*({"name": f"j{n}", "command": "true"} for n in range(JOBS)))
    await_(lambda: "no job starts until" in service.said, "it is shown")
    shown = service.ramherd.run("jobs")
    assert shown.stdout.count(sentence(runs, fault)) == JOBS, shown.stdout + shown.stderr
    # Two tries later it is still one event.
    paused = "SELECT count(*) FROM events WHERE kind = 'starts_paused'"
    await_(lambda: len(list(runs.iterdir())) <= 1, "nothing is left of a try")
    mend()
    service.client.wait(herd)
    assert service.rows(paused) == [(1,)]
    assert service.said.count("no job starts until") == 1
    assert service.said.count("jobs start again") == 1
    losses(f"runs cannot be prepared ({fault}), service, {service.ramherd.pen}",
           **count_losses(service))  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_herd_waits_until_runs_can_be_prepared(home: Ramherd, fault: str, losses: Losses) -> None:
    """The same without a service: it goes on by itself, and Ctrl-C would end it meanwhile."""
    runs = home.state / "ramherd/runs"
    mend = FAULTS[fault](runs)
    text = "".join(json.dumps({"command": "true", "cwd": "/"}) + "\n" for _ in range(JOBS))
    herd = home.start("run", "-", "--json", "--pen", home.pen, stdin=text)
    await_(lambda: sentence(runs, fault) in herd.err.read_text(), "it is shown")
    shown = home.run("jobs").stdout
    assert shown.count(sentence(runs, fault)) == JOBS, shown
    mend()
    assert herd.wait() == 0, herd.err.read_text()
    assert herd.err.read_text().count("no job starts until") == 1
    summary = json.loads(herd.out.read_text())
    losses(
        f"runs cannot be prepared ({fault}), run, {home.pen}",
        failed_jobs=summary["failed"],
        extra_runs=sum(one["runs"] - 1 for one in summary["results"]),
    )  # fmt: skip


def test_a_herd_that_waits_for_its_disk_can_be_interrupted(home: Ramherd, losses: Losses) -> None:
    """Ctrl-C does not wait for anything that is broken."""
    mend = make_read_only(home.state / "ramherd/runs")
    herd = home.start(
        "run", "-", "--json", "--pen", home.pen, stdin='{"command": "true", "cwd": "/"}\n'
    )
    await_(lambda: "no job starts until" in herd.err.read_text(), "it is shown")
    herd.signal(signal.SIGINT)
    assert herd.wait() == 130
    mend()
    losses("runs cannot be prepared, then Ctrl-C", processes=len(ours()))


def test_a_removed_directory_of_runs_is_made_again(each_service: Service, losses: Losses) -> None:
    """While a run goes on: its own files are gone, its exit is not."""
    service = each_service
    herd = service.submit({"name": "long", "command": "sleep 1; exit 4"})
    service.await_state("long", "running")
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    shutil.rmtree(service.ramherd.state / "ramherd/runs")
    service.client.wait(service.submit({"name": "next", "command": "true"}))
    service.client.wait(herd)
    assert service.job("long")["runs"][0]["exit_code"] == 4
    assert service.state("next") == "done"
    (service.ramherd.state / "ramherd/keeper.err").unlink(missing_ok=True)
    losses(f"runs/ is removed, {service.ramherd.pen}",
           extra_runs=count_losses(service)["extra_runs"])  # fmt: skip


def fleet_dirs(service: Service) -> list[Path]:
    """The deepest first."""
    ((record,),) = service.rows("SELECT record FROM pens WHERE run = ''")
    return [Path(path) for path in json.loads(record).get("paths", {}).values()]


@pytest.fixture
def cgroup_service(service: Service) -> Service:
    need_root("remove the cgroup of a fleet")
    if not fleet_dirs(service):
        pytest.skip("no cgroups here")
    return service


def test_a_removed_cgroup_is_made_again(cgroup_service: Service, losses: Losses) -> None:
    """With its limit; the next run is in it."""
    service = cgroup_service
    service.client.wait(service.submit({"name": "first", "command": "true"}))
    await_(lambda: not service.rows("SELECT * FROM pens WHERE run <> ''"), "its pen is removed")
    limits = [path.joinpath(name) for path in fleet_dirs(service)
              for name in ("memory.limit_in_bytes", "memory.max")]  # fmt: skip
    before = {path: path.read_text() for path in limits if path.exists()}
    for path in fleet_dirs(service):
        path.rmdir()
    herd = service.submit(
        *({"name": f"j{n}", "command": "cat /proc/self/cgroup"} for n in range(JOBS))
    )
    service.client.wait(herd)
    assert {path: path.read_text() for path in before} == before
    logs = [path.read_text() for path in (service.ramherd.state / "ramherd/runs").glob("*/out")]
    assert sum(fleet_dirs(service)[0].name in text for text in logs) == JOBS
    losses("the fleet's cgroup is removed", **count_losses(service))


def test_a_run_that_was_moved_elsewhere_goes_on(cgroup_service: Service, losses: Losses) -> None:
    """Somebody empties and removes the cgroups of a run and of the fleet: the run ends by itself,
    another that is moved can be cancelled, and the next one gets a pen.
    """
    service = cgroup_service
    service.submit({"name": "ends", "command": "sleep 2; exit 4"})
    service.submit({"name": "stays", "command": "trap '' TERM; sleep 300 & wait; sleep 300"})
    for name in ("ends", "stays"):
        service.await_state(name, "running")
    await_(lambda: len(ours("RAMHERD_RUN")) >= 3, "they run")
    for fleet in fleet_dirs(service):
        for pen in [path for path in fleet.iterdir() if path.is_dir()]:
            for pid in (pen / "cgroup.procs").read_text().split():
                (fleet.parent / "cgroup.procs").write_text(pid)
            await_(partial(remove, pen), "the pen is removed")
        await_(partial(remove, fleet), "the fleet is removed")
    service.client.wait(service.submit({"name": "next", "command": "true"}))
    service.await_state("ends", "failed")
    assert service.job("ends")["runs"][0]["exit_code"] == 4
    service.client.cancel(service.job("stays")["id"])
    service.await_state("stays", "cancelled")
    await_(lambda: not ours("RAMHERD_RUN"), "nothing of it lives")
    assert service.state("next") == "done"
    losses("a run is moved out of its cgroup", extra_runs=count_losses(service)["extra_runs"])


def remove(path: Path) -> bool:
    try:
        path.rmdir()
    except OSError:
        return not path.exists()
    return True


def test_a_service_without_descriptors_starts_nothing(
    each_service: Service, losses: Losses
) -> None:
    """Until it has some again: whatever has them meanwhile, no job fails."""
    service = each_service
    service.client.wait(service.submit({"name": "first", "command": "true"}))
    pid = service.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    few = len(os.listdir(f"/proc/{pid}/fd")) + 16
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
    herd = service.submit(*({"name": f"j{n}", "command": "true"} for n in range(JOBS)))
    await_(lambda: "Too many open files: no job starts" in service.said, "it is shown")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    service.client.wait(herd)
    losses(f"no descriptors are left, {service.ramherd.pen}", **count_losses(service))


def test_a_fault_of_the_job_still_fails_it(
    each_service: Service, tmp_path: Path, losses: Losses
) -> None:
    """Its directory is missing, its program cannot be executed: no other job waits for that."""
    service, gone, program = each_service, tmp_path / "gone", tmp_path / "program"
    gone.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert service.ramherd.run("pause").returncode == 0
    herd = service.submit(
        {"name": "cwd", "command": "true", "cwd": str(gone)},
        {"name": "program", "command": [str(program)]},
        {"name": "fine", "command": "true"},
    )
    gone.rmdir()
    program.chmod(0o600)
    await_(lambda: service.job("fine")["reason"]["why"] == "paused", "the pause is its reason")
    assert service.ramherd.run("resume").returncode == 0
    service.client.wait(herd)
    assert service.state("fine") == "done"
    assert {name: service.job(name)["reason"]["what"] for name in ("cwd", "program")} == {
        "cwd": f"cannot enter {gone}: No such file or directory",
        "program": f"cannot start {program}: Permission denied",
    }
    losses("a job's own fault", pauses=service.said.count("no job starts until this is resolved"))
