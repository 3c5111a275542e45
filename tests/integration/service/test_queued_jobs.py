"""What a user does with jobs that are queued: pause, edit, number, list and wait for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_
from integration.service.conftest import Service

SLEEP = "exec sleep 300"


def test_a_paused_job_does_not_start_and_others_do(service: Service) -> None:
    """By its number; the list says who paused it, and resume lets it start."""
    service.client.pause()
    service.submit({"name": "a", "command": "true"}, {"name": "b", "command": "true"})
    assert service.ramherd.run("pause", "1").returncode == 0
    service.client.resume()
    service.await_state("b", "done")
    listed = service.ramherd.run("jobs").stdout
    assert "1  a     queued" in listed
    assert "paused by you" in listed
    shown = json.loads(service.ramherd.run("jobs", "--json").stdout.splitlines()[0])
    assert (shown["number"], shown["paused"], shown["reason"]["why"]) == (1, True, "job_paused")
    for verb, told in (("pause", "job 'b' has ended (done)"), ("resume", "is not paused")):
        refused = service.ramherd.run(verb, "b")
        assert refused.returncode != 0
        assert told in refused.stderr
    assert service.ramherd.run("resume", "a").returncode == 0
    service.await_state("a", "done")


def test_an_edited_job_starts_first_with_its_memory(service: Service) -> None:
    """Of two that wait, the one with the higher priority; a job that runs cannot be changed."""
    service.stop()
    service.start("--max-parallel", "1")
    service.submit(
        {"name": "first", "command": SLEEP},
        {"name": "b", "command": "true"},
        {"name": "c", "command": SLEEP, "memory": "20MiB"},
    )
    service.await_state("first", "running")
    await_(lambda: service.job("c")["reason"]["why"] == "max_parallel", "it waits")
    assert service.ramherd.run("edit", "c", "--priority", "5", "--memory", "40MiB").returncode == 0
    assert (service.job("c")["priority"], service.job("c")["memory_bytes"]) == (5, 40 << 20)
    shown = service.ramherd.run("show", "c").stdout
    assert "\nmemory     40 MiB reserved from its start\npriority   5\n" in shown
    refused = service.ramherd.run("pause", "first")
    assert "job 'first' is running: only a job that is queued can be paused" in refused.stderr
    assert "hint: end it: ramherd cancel 1; restart it: ramherd recycle 1" in refused.stderr
    for words, told in (
        (["edit", "first", "--priority", "5"], "only a job that is queued"),
        (["edit", "b"], "nothing to change"),
        (["edit", "b", "--memory", "40"], "has no unit"),
        (["edit", "b", "--memory", "640TiB"], "memory of 640 TiB is more than the whole budget of"),
        (["edit", "b", "--priority", "high"], "high"),
    ):
        refused = service.ramherd.run(*words)
        assert refused.returncode == 2, words
        assert told in refused.stderr
    service.client.cancel("1")
    service.await_state("c", "running")
    assert service.state("b") == "queued"


def test_waiting_ends_with_the_jobs(service: Service, tmp_path: Path) -> None:
    """0 if all are done, 1 if one failed, 3 when the timeout is over."""
    go = f"until test -e {tmp_path}/go; do sleep 0.05; done"
    herd = service.submit({"name": "a", "command": go}, {"name": "b", "command": "exit 3"})
    run = service.ramherd.run
    service.await_state("b", "failed")
    assert run("wait", "b").returncode == 1
    late = run("wait", "a", "--timeout", "200ms")
    assert (late.returncode, late.stdout.splitlines()[-1]) == (3, "1 running after 0.2s")
    command = [sys.executable, "-m", "ramherd", "wait", herd[-6:], "--json"]
    waiting = subprocess.Popen(command, env=service.ramherd.env, stdout=subprocess.PIPE)
    (tmp_path / "go").touch()
    out, _ = waiting.communicate(timeout=60)
    assert json.loads(out) == {"jobs": 2, "timeout": False, "states": {"done": 1, "failed": 1}}
    assert waiting.returncode == 1
    assert run("wait", "a").returncode == 0
    nothing = run("wait")
    assert (nothing.returncode, nothing.stdout) == (0, "no jobs\n")
    assert "no job 'x'" in run("wait", "x").stderr


def test_a_run_that_follows_says_that_the_service_is_paused(service: Service) -> None:
    """In a pipe too, with the command that ends the pause; so does each later pause."""
    service.client.pause()
    service.client.resume()
    service.client.pause()
    command = [sys.executable, "-m", "ramherd", "run", "-q", "-"]
    run = subprocess.Popen(
        command, env=service.ramherd.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdin is not None
    run.stdin.write('{"name": "a", "command": "true"}\n')
    run.stdin.close()
    assert run.stdout is not None
    first = run.stdout.readline()
    assert first.startswith("the service was paused by you ")
    assert first.endswith(" ago: no job starts until `ramherd resume`\n")
    service.client.resume()
    rest = run.stdout.read()
    assert run.wait(60) == 0
    assert rest.count("resume") == 1, rest


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_list_fits_the_screen(service: Service, columns: str) -> None:
    """With and without the service; after it has stopped, jobs wait for the next one."""
    service.client.pause()
    service.submit({"name": "n" * 60, "command": "true"}, {"name": "b", "command": "true"})
    ramherd = Ramherd(
        **{**vars(service.ramherd), "env": {**service.ramherd.env, "COLUMNS": columns}}
    )
    lines = ramherd.run("jobs").stdout.splitlines()
    assert lines[1].split() == ["NO", "NAME", "STATE", "MEMORY", "TIME", "DETAILS"]
    assert max(map(len, lines)) <= int(columns)
    unknown = ramherd.run("jobs", "--herd", "nosuch")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no herd 'nosuch'" in unknown.stderr
    service.stop()
    assert ramherd.run("jobs").stdout.count("no service (ramherd up)") == 2
    service.start()


def test_the_status_is_one_screen_with_and_without_the_service(service: Service) -> None:
    """The same keys in both cases."""
    service.client.pause()
    service.submit({"name": "a", "command": "true"})
    keys = set[str]()
    for is_up in (True, False):
        lines = service.ramherd.run("status").stdout.splitlines()
        found = json.loads(service.ramherd.run("status", "--json").stdout)
        keys = keys or set(found)
        assert set(found) == keys
        assert (found["paused"], found["jobs"]) == (True, {"queued": 1})
        assert (found["service"] is not None) == is_up
        assert found["budget_bytes"] > found["used_bytes"] >= 0
        assert lines[0].startswith("service  up for" if is_up else "service  not running")
        assert any(line.startswith("paused   by you ") for line in lines)
        assert any("queued" in line and " a " in line for line in lines)
        if is_up:
            service.stop()
    service.start()
