"""A herd whose `ramherd run` was interrupted goes on, in another one or in the service."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, Started, await_, need
from integration.service.conftest import Service
from integration.service.talker import Talker
from ramherd.agents.resume_prompt import render_resume_prompt
from ramherd.core.model import Reason, Why

GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@example.org")
LARGE = "large " * 4000


@pytest.fixture
def talker(tmp_path: Path) -> Talker:
    return Talker(tmp_path)


def start(ramherd: Ramherd, jobs: list[dict[str, Any]], *flags: str) -> Started:
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    return ramherd.start("run", "-", "--pen", ramherd.pen, "--grace", "1s", *flags, stdin=text)


def resume(ramherd: Ramherd, *args: str) -> dict[str, Any]:
    done = ramherd.run("run", "--resume", *args, "--json")
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "by_name": {one["job"]: one for one in found["results"]}}


def herds(ramherd: Ramherd) -> list[str]:
    lines = ramherd.run("jobs", "--all", "--json").stdout.splitlines()
    return sorted({json.loads(line)["herd"] for line in lines})


def state_of(ramherd: Ramherd, name: str) -> str:
    lines = map(json.loads, ramherd.run("jobs", "--all", "--json").stdout.splitlines())
    return next((str(line["state"]) for line in lines if line["name"] == name), "")


def commands(here: Path) -> list[dict[str, Any]]:
    """One that is done, one that is cut off, one that waits for it, one that has failed."""
    marked = "echo $RAMHERD_ATTEMPT$RAMHERD_RESUMED $OWN >> "
    wait = f'{marked} {here}/cut; touch {here}/begun; [ -n "$RAMHERD_RESUMED" ] || sleep 300'
    job = {"cwd": str(here), "memory": "10MiB"}
    return [
        {**job, "name": "done", "command": f"{marked} {here}/done"},
        {**job, "name": "bad", "command": "exit 3"},
        {**job, "name": "cut", "command": wait, "env": {"OWN": "own"}, "after": ["done"]},
        {**job, "name": "last", "command": f"wc -c > {here}/last", "stdin": LARGE,
         "after": ["cut"]},
    ]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_herd_goes_on(
    each_ramherd: Ramherd, tmp_path: Path, number: signal.Signals
) -> None:
    """Done stays done and failed stays failed; what was cut off and what waited run, once, with
    the variables and inputs of the job file.
    """
    ramherd = each_ramherd
    running = start(ramherd, commands(tmp_path), "--max-parallel", "2")
    await_((tmp_path / "begun").exists, "a job is cut off")
    await_(lambda: state_of(ramherd, "bad") == "failed", "another has failed")
    running.signal(number)
    assert running.wait() == (130 if number == signal.SIGINT else -9)
    (herd,) = herds(ramherd)
    if number == signal.SIGINT:
        assert f"to continue: ramherd run --resume {herd}" in running.err.read_text()
    results = ramherd.run("results").stdout
    assert f"to continue: ramherd run --resume {herd}" in results
    counts = "1 of 4 jobs done (1 failed, 2 cancelled)"
    assert (counts if number == signal.SIGINT else "(1 failed, 2 lost)") in results
    summary = resume(ramherd)

    assert (summary["herd"], summary["done"], summary["failed"]) == (herd, 3, 1)
    assert (tmp_path / "done").read_text() == "1\n"
    assert (tmp_path / "cut").read_text() == "1 own\n21 own\n"
    assert (tmp_path / "last").read_text().strip() == str(len(LARGE))
    by_name = summary["by_name"]
    assert [by_name[name]["runs"] for name in ("done", "bad", "cut", "last")] == [1, 1, 2, 1]
    complete = ramherd.run("run", "--resume", herd)
    assert (complete.returncode, complete.stderr) == (
        1,
        f"ramherd: herd {herd} is complete: 3 of 4 jobs done (1 failed)\n"
        "  hint: run a job again: ramherd retry JOB\n",
    )
    nothing = ramherd.run("run", "--resume")
    assert (nothing.returncode, "no herd was interrupted" in nothing.stderr) == (2, True)
    assert not list((ramherd.state / "ramherd/environments").iterdir())


def test_a_herd_that_is_alive_is_refused(ramherd: Ramherd, tmp_path: Path) -> None:
    """Whoever runs it; one that was interrupted twice goes on a second time."""
    running = start(ramherd, commands(tmp_path))
    await_((tmp_path / "begun").exists, "a job runs")
    (herd,) = herds(ramherd)
    refused = ramherd.run("run", "--resume", herd)
    retried = ramherd.run("retry", "bad")
    running.signal(signal.SIGKILL)
    running.wait()
    (tmp_path / "begun").unlink()
    (tmp_path / "hold").touch()

    line = f"herd {herd} is still run by another ramherd run (pid {running.process.pid})"
    assert (refused.returncode, line in refused.stderr) == (2, True)
    assert (retried.returncode, line in retried.stderr) == (2, True)
    assert resume(ramherd, herd)["done"] == 3


def test_what_cannot_be_resumed_is_one_line(ramherd: Ramherd, tmp_path: Path) -> None:
    """An unknown herd, jobs beside it, a session of `exec`."""
    unknown = ramherd.run("run", "--resume", "01XXX")
    jobs = ramherd.run("run", "jobs.toml", "--resume")
    ramherd.run("exec", "--pen", ramherd.pen, "--", "true")
    (session,) = herds(ramherd)
    interactive = ramherd.run("run", "--resume", session)

    assert [one.returncode for one in (unknown, jobs, interactive)] == [2, 2, 2]
    assert "no herd '01XXX'" in unknown.stderr
    assert "takes no jobs" in jobs.stderr
    assert "was a session of ramherd exec" in interactive.stderr


def ask(talker: Talker, name: str, **keys: Any) -> dict[str, Any]:
    told = {"agent": "claude", "prompt": "do it", "agent_program": str(talker.program)}
    return {"name": name, "memory": "20MiB", "cwd": str(talker.here), **told, **keys}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_agent_goes_on_in_its_session_and_worktree(
    ramherd: Ramherd, talker: Talker, tmp_path: Path, number: signal.Signals
) -> None:
    """Twice: interrupted, resumed, interrupted again, resumed again. Its cost counts on."""
    need("git", "git")
    repository = tmp_path / "repository"
    subprocess.run([*GIT, "init", "-q", repository], check=True)
    commit = ("commit", "-q", "--allow-empty", "-m", "first")
    subprocess.run([*GIT, "-C", repository, *commit], check=True)
    job = ask(talker, "a", cwd=str(repository), worktree=True, env={"WRITE": "new"})
    running = start(ramherd, [job], "--max-cost-usd", "7")
    for starts in (1, 2):
        await_(lambda: len(talker.asked) == starts, f"start {starts}")  # noqa: B023
        await_(lambda: "Bash" in said_of(ramherd), "the agent is in a tool")
        running.signal(number)
        running.wait()
        if starts == 1:
            running = ramherd.start("run", "--resume")
    talker.go()
    summary = resume(ramherd)

    (first, session, _prompt), *again = talker.asked
    why = Why.INTERRUPTED if number == signal.SIGINT else Why.SUPERVISOR_LOST
    assert first == "--session-id"
    assert again == [["--resume", session, render_resume_prompt(Reason(why))]] * 2
    result = summary["by_name"]["a"]
    assert (result["state"], result["runs"], result["session"]) == ("done", 3, session)
    assert (Path(result["worktree"]) / "new").read_text() == "new\n"
    assert not list(repository.glob("new"))


def said_of(ramherd: Ramherd) -> str:
    """What the agents of all runs printed."""
    found = sorted((ramherd.state / "ramherd/runs").glob("*/out"))
    return found[-1].read_text() if found else ""


def test_the_service_goes_on_with_a_dead_run(service: Service, talker: Talker) -> None:
    """`run --resume` passes the herd to it; a second one is refused, and no job runs twice."""
    ramherd = service.ramherd
    here = talker.here
    jobs = [ask(talker, "a"), *commands(here)]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    running = ramherd.start("run", "-", "--own", stdin=text)
    await_(lambda: (here / "begun").exists() and "Bash" in said_of_all(ramherd), "both are at work")
    running.signal(signal.SIGKILL)
    running.wait()
    (herd,) = herds(ramherd)
    resumed = ramherd.start("run", "--resume", "--json")
    await_(lambda: len(talker.asked) == 2, "the agent goes on")
    second = ramherd.run("run", "--resume", herd)
    talker.go()
    assert resumed.wait() == 1
    summary = json.loads(resumed.out.read_text())

    assert (summary["service"], summary["done"], summary["failed"]) == (True, 4, 1)
    assert (here / "cut").read_text() == "1 own\n21 own\n"
    assert (here / "last").read_text().strip() == str(len(LARGE))
    assert talker.asked[1][:2] == ["--resume", talker.asked[0][1]]
    assert (second.returncode, "belongs to the service" in second.stderr) == (2, True)


def said_of_all(ramherd: Ramherd) -> str:
    return "".join(path.read_text() for path in (ramherd.state / "ramherd/runs").glob("*/out"))


def test_a_herd_that_was_interrupted_in_the_service_goes_on(
    service: Service, tmp_path: Path
) -> None:
    """Ctrl-C of `ramherd run` with a service; the service or, without one, `run --resume`."""
    ramherd = service.ramherd
    text = "".join(json.dumps(job) + "\n" for job in commands(tmp_path))
    running = ramherd.start("run", "-", stdin=text)
    await_((tmp_path / "begun").exists, "a job runs")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    (herd,) = herds(ramherd)
    # Ctrl-C before the first event finds no output to keep apart: then all is on standard output.
    printed = running.out.read_text() + running.err.read_text()
    assert f"to continue: ramherd run --resume {herd}" in printed
    service.stop()
    summary = resume(ramherd)

    assert (summary["herd"], summary["done"], summary["failed"]) == (herd, 3, 1)
    assert (tmp_path / "cut").read_text() == "1 own\n21 own\n"


@pytest.mark.parametrize("in_service", [False, True])
def test_a_job_of_an_ended_run_is_retried(
    service: Service, tmp_path: Path, in_service: bool
) -> None:
    """Here, or in the service, with those that were cancelled because of it."""
    ramherd = service.ramherd
    job: dict[str, Any] = {"cwd": str(tmp_path), "memory": "10MiB"}
    jobs = [
        {**job, "name": "x", "command": "test -e ok", "env": {"OWN": "1"}},
        {**job, "name": "y", "command": "touch after", "after": ["x"]},
        {**job, "name": "z", "command": "false"},
    ]
    running = start(ramherd, jobs, "--own")
    assert running.wait() == 1
    if not in_service:
        service.stop()
    (tmp_path / "ok").touch()
    too_early = ramherd.run("retry", "y")
    without = ramherd.run("retry", "x")
    ramherd.env["OWN"] = "2"
    done = ramherd.run("retry", "x", "--json")

    assert "waits for 'x', which is failed" in too_early.stderr
    assert "the variables of job 'x' were removed when its herd ended: OWN" in without.stderr
    assert (too_early.returncode, without.returncode, done.returncode) == (2, 2, 0), done.stderr
    await_((tmp_path / "after").exists, "the job after it")
    if in_service:
        service.await_state("y", "done")
    again = ramherd.run("retry", "x")
    assert (again.returncode != 0, "nothing to retry: job 'x' is done" in again.stderr) == (
        True,
        True,
    )
