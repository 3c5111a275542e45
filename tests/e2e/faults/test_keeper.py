"""The keeper dies again and again, for a reason or without one, or does not answer."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.faults.conftest import Losses, make_service
from integration.conftest import Ramherd
from integration.service.conftest import Service, finish

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
    assert "with nothing else running, and never without it" in summary["lines"]
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
