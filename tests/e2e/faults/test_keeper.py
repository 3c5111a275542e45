"""The keeper dies again and again, for a reason or without one, does not answer, or cannot be
started.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.faults.conftest import Losses, make_service
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from integration.service.conftest import Service, finish, is_keeper
from ramherd.act.keeper_client import adopt_keeper

# The keeper is the parent of a run; the pid of the service is in its status file.
KILLER = "sleep 0.2; kill -9 $PPID; sleep 60"
SERVICE_PID = "grep -o '\"pid\": [0-9]*' $RAMHERD_RUNTIME_DIR/status.json | grep -o '[0-9]*'"
KILLER_OF_BOTH = f"sleep 0.2; kill -9 $({SERVICE_PID}) $PPID; sleep 60"


def herd_with(killer: str, innocent: int) -> list[dict[str, Any]]:
    """The guilty job stands in the middle."""
    jobs = [{"name": f"innocent-{number}", "command": "sleep 1"} for number in range(innocent)]
    jobs.insert(innocent // 2, {"name": "guilty", "command": killer})
    return [{"cwd": "/", "memory": "16MiB", **job} for job in jobs]


def test_a_job_that_kills_its_keeper_is_found_and_no_other_job_fails(
    ramherd: Ramherd, losses: Losses
) -> None:
    """`ramherd run`: three deaths make suspects, they are halved, the last one is tried alone."""
    summary = ramherd.json(herd_with(KILLER, 7), "--max-parallel", "8")

    by_name = {result["job"]: result for result in summary["results"]}
    guilty = by_name.pop("guilty")
    assert (summary["done"], summary["failed"], summary["exit_code"]) == (7, 1, 1)
    assert (guilty["reason"]["why"], guilty["reason"]["alone"]) == ("ends_keeper", 4)
    assert guilty["runs"] <= 10
    assert "with no other job, and never without it" in summary["lines"]
    losses(
        "a job kills its keeper each time it runs",
        innocent_jobs_failed=sum(result["state"] != "done" for result in by_name.values()),
    )


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Service]:
    """A service that somebody starts again whenever it dies."""
    made = make_service(tmp_path, "--max-parallel", "4")
    made.start()
    yield made
    finish(made)


def test_a_job_that_kills_service_and_keeper_is_found(restarted: Service, losses: Losses) -> None:
    """The count of deaths is in the store, so the next service goes on with it."""
    service, deaths = restarted, 0
    service.submit(*herd_with(KILLER_OF_BOTH, 5))
    deadline = time.monotonic() + 60
    while service.rows("SELECT count(*) FROM jobs WHERE state IN ('done', 'failed')") != [(6,)]:
        assert time.monotonic() < deadline, (service.said, deaths)
        if service.process.poll() is not None:
            deaths += 1
            service.start(ready=False)
        time.sleep(0.02)

    rows = service.rows("SELECT name, state, reason FROM jobs")
    states = {name: state for name, state, _reason in rows}
    assert states.pop("guilty") == "failed"
    (reason,) = [json.loads(text) for name, _state, text in rows if name == "guilty"]
    assert (reason["why"], reason["alone"]) == ("ends_keeper", 4)
    assert deaths <= 10
    assert "guilty failed: the keeper died" in service.said
    losses(
        "a job kills service and keeper each time it runs",
        innocent_jobs_failed=sum(state != "done" for state in states.values()),
    )


HANGS = "the keeper has not answered for 4.0s"
LONG = {"command": "echo begun; sleep 3; echo ended", "memory": "16MiB"}


def stop_keeper(service: Service) -> int:
    """SIGSTOP, once a run is under way."""
    await_(lambda: ours("RAMHERD_RUN"), "a run is under way")
    (keeper,) = service.keepers()
    os.kill(keeper, signal.SIGSTOP)
    return keeper


def test_a_keeper_that_hangs_is_named_and_goes_on_when_it_comes_back(
    each_service: Service, losses: Losses
) -> None:
    """Noticed within 5 s, in an event and in `jobs`; a job can be cancelled; no run is lost."""
    service = each_service
    service.submit({"name": "goes on", **LONG}, {"name": "cancelled", "command": "sleep 60"})
    service.await_state("cancelled", "running")
    service.await_state("goes on", "running")
    keeper = stop_keeper(service)
    began_s = time.monotonic()
    await_(lambda: HANGS in service.said, "the hang is named")
    noticed_s = time.monotonic() - began_s
    service.submit({"name": "later", "command": "true"})
    await_(lambda: service.job("later")["reason"]["why"] == "keeper_hangs", "jobs shows it")
    cancelled = service.ramherd.run("cancel", "cancelled")
    assert cancelled.returncode == 0, cancelled.stderr
    service.await_state("cancelled", "cancelled")
    os.kill(keeper, signal.SIGCONT)
    service.await_state("goes on", "done")
    service.await_state("later", "done")

    assert noticed_s < 5.5
    assert service.keepers() == [keeper]
    runs = [service.job(name)["runs"] for name in ("goes on", "cancelled", "later")]
    losses("the keeper hangs and comes back", runs_repeated=sum(map(len, runs)) - 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_whose_keeper_hangs_ends_when_it_is_told_to(
    service: Service, number: int, losses: Losses
) -> None:
    """Its runs are ended by their pens; the next service resumes the job."""
    service.submit({"name": "a", "command": 'test -n "$RAMHERD_RESUMED" || sleep 60'})
    service.await_state("a", "running")
    stop_keeper(service)
    began_s = time.monotonic()
    assert service.stop(number) == 0, service.said
    took_s = time.monotonic() - began_s
    assert not ours("RAMHERD_RUN")
    service.start()
    service.await_state("a", "done")

    assert took_s < 10
    losses("the service is told to end while its keeper hangs", jobs=0, processes=len(ours()) - 3)


def test_ctrl_c_ends_a_herd_whose_keeper_hangs(ramherd: Ramherd, losses: Losses) -> None:
    """As soon as the hang is noticed."""
    text = json.dumps({"name": "a", "command": "sleep 60"})
    started = ramherd.start("run", "-", "--pen", ramherd.pen, "--grace", "1s", stdin=text)
    await_(lambda: ours("RAMHERD_RUN"), "a run is under way")
    (keeper,) = [pid for pid in ours() if is_keeper(pid)]
    os.kill(keeper, signal.SIGSTOP)
    began_s = time.monotonic()
    started.signal(signal.SIGINT)

    assert started.wait() == 130
    assert time.monotonic() - began_s < 10
    losses("Ctrl-C while the keeper hangs", processes=len(ours()))


def test_a_keeper_that_still_hangs_for_the_next_service_is_ended(
    service: Service, losses: Losses
) -> None:
    """Its runs are resumed, and no job is suspected."""
    service.submit({"name": "a", "command": 'test -n "$RAMHERD_RESUMED" || sleep 60'})
    service.await_state("a", "running")
    keeper = stop_keeper(service)
    service.kill()
    service.start()
    service.await_state("a", "done")

    assert "the keeper did not answer for 10 s" in service.said
    assert keeper not in ours()
    (counted,) = service.rows("SELECT count(*) FROM jobs WHERE suspicion IS NOT NULL")
    losses("service dies while its keeper hangs", jobs_suspected=counted[0])


def test_a_keeper_that_is_ending_is_left_to_end(
    tmp_path: Path, service: Service, losses: Losses
) -> None:
    """It listens no more, and its run still has its grace: how that run ends is not lost."""
    ready, told = tmp_path / "ready", tmp_path / "told"
    end = f"trap 'touch {told}; sleep 2; exit 7' TERM; touch {ready}; while :; do sleep 0.1; done"
    service.stop()
    service.start("--grace", "6s")
    service.submit({"name": "a", "command": end})
    service.await_state("a", "running")
    await_(ready.exists, "a run is under way")
    service.kill()
    (adoption,) = (service.ramherd.state / "ramherd/keepers").iterdir()
    with closing(await_(lambda: adopt_keeper(adoption), "the keeper is alone")) as keeper:
        keeper.send("end")
        keeper.flush()
        await_(told.exists, "the keeper ends its run")
        service.start()

    assert "did not answer" not in service.said
    service.await_state("a", "failed")
    (run,) = service.job("a")["runs"]
    losses("the service starts while its keeper ends", exit_codes=int(run["exit_code"] != 7))


# In the place of Python: while the file beside it says how, keepers do not start.
WRAPPER = """#!/bin/bash
if [[ "$*" == *keeper/__main__.py* && -e "$0.broken" ]]; then
    echo "Traceback (most recent call last):" >&2
    echo "ModuleNotFoundError: No module named 'ramherd'" >&2
    exit 1
fi
exec -a "$0" "{real}" "$@"
"""
FAILS = "cannot start the keeper"
CAUSES = {
    "broken": "ModuleNotFoundError: No module named 'ramherd'",
    "removed": "No such file or directory",
}


@dataclass
class Python:
    """An interpreter of our own, in an environment of its own, that can be broken and mended."""

    path: Path
    real: str
    keeper_errors: Path

    def mend(self) -> None:
        self.path.with_name("python.broken").unlink(missing_ok=True)
        self.path.write_text(WRAPPER.format(real=self.real))
        self.path.chmod(0o755)

    def break_(self, how: str) -> None:
        """`removed`: no process can be made of it. `broken`: it ends with an error."""
        if how == "removed":
            self.path.unlink()
        else:
            self.path.with_name("python.broken").touch()

    def count_tries(self) -> int:
        return self.keeper_errors.read_text().count("Traceback")


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Python]:
    """Every ramherd of this test is started by it, and starts its keepers with it."""
    real, home = Path(sys.executable), tmp_path / "python"
    (home / "bin").mkdir(parents=True)
    (home / "lib").symlink_to(Path(sys.prefix) / "lib")
    (home / "pyvenv.cfg").write_bytes((Path(sys.prefix) / "pyvenv.cfg").read_bytes())
    errors = tmp_path / "state/ramherd/keeper.err"
    made = Python(home / "bin/python", str(real), errors)
    made.mend()
    monkeypatch.setattr(sys, "executable", str(made.path))
    yield made
    errors.unlink(missing_ok=True)


@pytest.fixture(params=pens())
def mended(request: pytest.FixtureRequest, tmp_path: Path, python: Python) -> Iterator[Service]:
    """A service for every kind of pen, whose Python is in order when it ends."""
    made = Service(make_ramherd(tmp_path, str(request.param)))
    made.start()
    yield made
    python.mend()
    finish(made)


@pytest.mark.parametrize("how", CAUSES)
def test_a_keeper_that_cannot_be_started_is_named_and_tried_again(
    mended: Service, python: Python, how: str, losses: Losses
) -> None:
    """As when the package is replaced under a service: one line, few tries, then all goes on."""
    service = mended
    resumed = 'test -n "$RAMHERD_RESUMED" || sleep 60'
    service.submit({"name": "a", "command": resumed}, {"name": "b", "command": resumed})
    service.await_state("a", "running")
    service.await_state("b", "running")
    python.break_(how)
    kill_keeper(service)
    began_s = time.monotonic()
    await_(lambda: FAILS in service.said, "it is named")
    service.submit({"name": "later", "command": "true"})
    await_(lambda: service.job("later")["reason"]["why"] == "keeper_fails", "jobs shows it")
    assert CAUSES[how] in service.job("later")["reason"]["what"]
    cpu_s = read_cpu_s(service.process.pid)
    await_(lambda: time.monotonic() - began_s > 4.0, "some tries")
    cpu_s = read_cpu_s(service.process.pid) - cpu_s
    tries = python.count_tries() if how == "broken" else 0
    python.mend()
    for name in ("a", "b", "later"):
        service.await_state(name, "done")

    assert tries <= 5
    assert cpu_s < 1.0
    kinds = [kind for (kind,) in service.rows("SELECT kind FROM events")]
    counted = [kinds.count(kind) for kind in ("keeper_lost", "starts_paused", "starts_resumed")]
    assert counted == [1, 1, 1]
    assert service.said.count(FAILS) == 1
    runs = {name: len(service.job(name)["runs"]) for name in ("a", "b", "later")}
    losses(
        f"the keeper cannot be started: Python is {how}, {service.ramherd.pen}",
        jobs_failed=sum(service.state(name) != "done" for name in runs),
        extra_runs=sum(runs.values()) - 5,
    )


def kill_keeper(service: Service) -> None:
    """Its children look like it until they execute their programs."""
    await_(lambda: len(service.keepers()) == 1, "nothing is being started")
    os.kill(service.keepers()[0], signal.SIGKILL)


def read_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_without_a_keeper_ends_when_it_is_told_to(
    mended: Service, python: Python, number: int, losses: Losses
) -> None:
    """At once; the next service resumes the job."""
    service = mended
    service.submit({"name": "a", "command": 'test -n "$RAMHERD_RESUMED" || sleep 60'})
    service.await_state("a", "running")
    python.break_("broken")
    kill_keeper(service)
    await_(lambda: FAILS in service.said, "it is named")
    began_s = time.monotonic()
    assert service.stop(number) == 0, service.said
    took_s = time.monotonic() - began_s
    left = len(ours())
    python.mend()
    service.start()
    service.await_state("a", "done")

    assert took_s < 5
    fault = f"the service gets signal {number:d} while it has no keeper, {service.ramherd.pen}"
    losses(fault, processes=left)


def test_a_herd_whose_first_keeper_cannot_be_started_goes_on_when_one_can(
    ramherd: Ramherd, python: Python, losses: Losses
) -> None:
    """`ramherd run` names the cause; no job pays."""
    python.break_("broken")
    text = "".join(
        json.dumps({"name": name, "command": "true", "cwd": "/"}) + "\n" for name in "ab"
    )
    herd = ramherd.start("run", "-", "--json", "--pen", ramherd.pen, stdin=text)
    await_(lambda: FAILS in herd.err.read_text(), "it is named")
    await_(lambda: python.count_tries() >= 2, "it is tried again")
    python.mend()
    assert herd.wait() == 0, herd.err.read_text()
    python.keeper_errors.unlink()

    said, summary = herd.err.read_text(), json.loads(herd.out.read_text())
    assert said.count(f"{FAILS}: {CAUSES['broken']}: no job starts until a later") == 1
    assert "Traceback" not in said
    runs = sum(result["runs"] for result in summary["results"])
    losses(
        "a herd cannot start its first keeper",
        jobs_not_done=2 - summary["done"],
        extra_runs=runs - 2,
    )


def test_ctrl_c_ends_a_herd_that_has_no_keeper(
    ramherd: Ramherd, python: Python, losses: Losses
) -> None:
    """However long it has waited for one."""
    python.break_("broken")
    herd = ramherd.start("run", "-", "--pen", ramherd.pen, stdin='{"command": "true", "cwd": "/"}')
    await_(lambda: FAILS in herd.err.read_text(), "it is named")
    began_s = time.monotonic()
    herd.signal(signal.SIGINT)
    assert herd.wait() == 130, herd.err.read_text()
    took_s = time.monotonic() - began_s
    python.keeper_errors.unlink()

    assert took_s < 2
    losses("Ctrl-C while there is no keeper", processes=len(ours()))
