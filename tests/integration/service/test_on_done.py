"""`on_done` of jobs and herds: commands of the user after an end."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_, ours
from integration.service.conftest import Service

# What it is told, and what it reads.
NOTE = (
    'echo "$RAMHERD_NAME $RAMHERD_STATE $RAMHERD_END $RAMHERD_EXIT_CODE $OWN" >>ended; '
    "cat >$RAMHERD_NAME.json"
)
HERD = 'echo "$RAMHERD_HERD $RAMHERD_STATE $RAMHERD_EXIT_CODE" >>over; cat >herd.json'


def jobs(here: Path) -> list[dict[str, Any]]:
    job: dict[str, Any] = {"cwd": str(here), "memory": "10MiB", "on_done": NOTE}
    return [
        {**job, "name": "good", "command": "true", "env": {"OWN": "own"}},
        {**job, "name": "bad", "command": "exit 3"},
        {**job, "name": "never", "command": "true", "after": ["bad"]},
        {**job, "name": "fails", "command": "true", "on_done": "echo no such branch; exit 1"},
    ]


def check(here: Path, herd: str) -> None:
    """Each ran once; a job that never ran has none."""
    lines = (here / "ended").read_text().splitlines()
    assert sorted(lines) == ["bad failed failed 3 ", "good done done 0 own"]
    told = json.loads((here / "good.json").read_text())
    assert (told["name"], told["state"], len(told["runs"])) == ("good", "done", 1)
    assert (here / "over").read_text() == f"{herd} failed 1\n"
    whole = json.loads((here / "herd.json").read_text())
    assert {job["name"]: job["state"] for job in whole["jobs"]} == {
        "good": "done", "bad": "failed", "never": "cancelled", "fails": "done",
    }  # fmt: skip


def test_commands_after_the_end_of_a_run(each_ramherd: Ramherd, tmp_path: Path) -> None:
    """A command that fails is a warning, and its job stays done."""
    each_ramherd.env["PWD"] = str(tmp_path)
    line = f"cd {tmp_path} && {{ {HERD}; }}"
    summary = each_ramherd.json(jobs(tmp_path), "--on-done", line, "--max-parallel", "1")

    check(tmp_path, summary["herd"])
    assert "fails: the on_done command failed: exit status 1: no such branch" in summary["lines"]
    assert {one["job"]: one["state"] for one in summary["results"]}["fails"] == "done"


def test_commands_after_the_end_in_the_service(service: Service, tmp_path: Path) -> None:
    """The same, with the environment that the herd was submitted with."""
    text = "".join(json.dumps(job) + "\n" for job in jobs(tmp_path))
    done = service.ramherd.run("submit", "-", "--on-done", HERD, stdin=text)
    herd = done.stdout.strip()
    service.client.wait(herd)
    await_((tmp_path / "herd.json").exists, "the command of the herd")
    await_(lambda: (tmp_path / "herd.json").read_text().endswith("\n"), "all of its input")

    check(tmp_path, herd)
    events = service.ramherd.run("events", "--herd", herd).stdout
    assert "the on_done command failed: exit status 1: no such branch" in events


def test_a_service_starts_what_the_one_before_has_not(service: Service, tmp_path: Path) -> None:
    """Once: what had started before its service was killed is not started again."""
    wait = f"echo begun >>{tmp_path}/begun; sleep 300"
    job = {"command": "true", "memory": "10MiB", "on_done": wait}
    herd = service.submit(*({"name": f"job-{n}", **job} for n in range(6)))
    begun = tmp_path / "begun"
    await_(lambda: begun.exists() and begun.read_text().count("begun") == 4, "four at a time")
    service.client.wait(herd)
    service.kill()
    service.start()
    await_(lambda: begun.read_text().count("begun") == 6, "the other two")
    service.stop()

    assert begun.read_text().count("begun") == 6
    await_(lambda: not ours(), "nothing of them is left")


def test_an_interrupted_job_has_not_ended(ramherd: Ramherd, tmp_path: Path) -> None:
    """Its command runs once, after `run --resume`. Ctrl-C ends commands that run."""
    job: dict[str, Any] = {"cwd": str(tmp_path), "memory": "10MiB", "on_done": NOTE}
    cut = 'touch begun; [ -n "$RAMHERD_RESUMED" ] || sleep 300'
    given = [
        {**job, "name": "cut", "command": cut},
        {**job, "name": "quick", "command": "true", "on_done": "touch hangs; sleep 300"},
    ]
    text = "".join(json.dumps(one) + "\n" for one in given)
    running = ramherd.start("run", "-", "--grace", "1s", "--pen", ramherd.pen, stdin=text)
    await_(lambda: all((tmp_path / name).exists() for name in ("begun", "hangs")), "both run")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    assert not (tmp_path / "ended").exists()
    resumed = ramherd.run("run", "--resume")

    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "ended").read_text() == "cut done done 0 \n"


@pytest.mark.parametrize("given", [[], "", 7])
def test_a_command_that_is_none_is_refused(ramherd: Ramherd, given: Any) -> None:
    """Before anything starts."""
    text = json.dumps({"command": "true", "on_done": given})
    refused = ramherd.run("run", "-", stdin=text)

    assert (refused.returncode, "'on_done'" in refused.stderr) == (2, True)
