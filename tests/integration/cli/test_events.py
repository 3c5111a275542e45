"""`ramherd events -f`: events as they happen, with and without a service."""

import json
import signal
from pathlib import Path
from typing import Any

from integration.conftest import Ramherd, Started, await_
from integration.service.conftest import Service, service

__all__ = ["service"]


def kinds(started: Started) -> list[tuple[str, str]]:
    """The name of the job and the kind of each event that was printed so far."""
    lines = started.out.read_text().splitlines()
    return [(event["name"], event["kind"]) for event in map(json.loads, lines)]


def test_events_are_followed_before_the_first_herd(ramherd: Ramherd) -> None:
    """They come as they happen, of every herd. Ctrl-C ends it without a line."""
    following = ramherd.start("events", "-f", "--json")
    for name in ("a", "b"):
        ramherd.run("run", "-", stdin=json.dumps({"name": name, "command": ["true"]}))
    await_(lambda: ("b", "job_done") in kinds(following), "the end of b is printed")
    following.signal(signal.SIGINT)

    assert following.wait() == 130
    assert following.err.read_text() == ""
    assert [name for name, kind in kinds(following) if kind == "job_done"] == ["a", "b"]


def test_watching_jobs_ends_without_a_line(ramherd: Ramherd) -> None:
    """Ctrl-C is its usual end as well."""
    watching = ramherd.start("jobs", "--watch")
    await_(lambda: "no jobs" in watching.out.read_text(), "the list is printed")
    watching.signal(signal.SIGINT)

    assert watching.wait() == 130
    assert watching.err.read_text() == ""


def test_following_a_herd_of_the_service_ends_with_it(service: Service, tmp_path: Path) -> None:
    """So does following a job. All their events are printed, once."""
    gate = tmp_path / "gate"
    code = f"while ! test -e {gate}; do sleep 0.05; done"
    herd = service.submit({"name": "a", "command": ["sh", "-c", code]})
    of_herd = service.ramherd.start("events", "-f", "--json", "--herd", herd)
    await_(lambda: ("a", "run_started") in kinds(of_herd), "its start is printed")
    gate.touch()

    assert of_herd.wait() == 0
    assert kinds(of_herd).count(("a", "job_done")) == 1
    of_job = service.ramherd.run("events", "-f", "--job", "a")
    assert (of_job.returncode, of_job.stdout.count("done")) == (0, 1)


def test_the_jobs_of_a_submission_are_only_planned(ramherd: Ramherd) -> None:
    """`submit --dry-run` needs no service, and prints what `run --dry-run` prints."""
    job = json.dumps({"name": "a", "command": ["true", "x y"], "env": {"A_TOKEN": "secret"}})
    printed = [
        [
            ramherd.run(verb, "-", "--dry-run", *flags, stdin=job).stdout
            for flags in ((), ["--json"])
        ]
        for verb in ("run", "submit")
    ]

    assert printed[0] == printed[1]
    (planned,) = json.loads(printed[0][1])["jobs"]
    assert (planned["argv"], planned["env"]) == (["true", "x y"], {"A_TOKEN": "(hidden)"})
    assert "secret" not in printed[0][0]


def test_max_parallel_is_no_setting_of_a_submission(ramherd: Ramherd) -> None:
    """The service has one limit for all herds; the hint names where it can be set."""
    done = ramherd.run("submit", "-j", "3", "jobs.toml")

    assert done.returncode == 2
    assert "hint: ramherd up -j 3, or ramherd run -j 3" in done.stderr


def test_verbs_that_ask_the_service_answer_with_json(service: Service, tmp_path: Path) -> None:
    """The ids of the jobs that they changed."""

    def ask(*words: str) -> Any:
        done = service.ramherd.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert ask("pause") == {"paused": True, "jobs": []}
    herd = service.submit({"name": "a", "command": ["true"]}, {"name": "b", "command": ["true"]})
    a, b = (service.id_of(herd, name) for name in "ab")
    assert ask("edit", "a", "--priority", "5") == {"jobs": [a], "priority": 5, "memory_bytes": None}
    assert ask("pause", "a") == {"paused": True, "jobs": [a]}
    assert ask("resume", "a") == {"paused": False, "jobs": [a]}
    assert ask("cancel", "b") == {"job": b, "jobs": 1}
    service.await_in(herd, "b", "cancelled")
    assert ask("cancel", herd) == {"herd": herd, "jobs": 1}
    assert ask("resume") == {"paused": False, "jobs": []}


def test_logs_as_json(ramherd: Ramherd) -> None:
    """A line each, with its stream; bytes that are no UTF-8 are escaped."""
    code = "printf 'one\\n\\377two'; echo bad >&2"
    ramherd.json([{"name": "a", "command": ["sh", "-c", code]}])
    lines = list(map(json.loads, ramherd.run("logs", "a", "--json").stdout.splitlines()))

    assert {(line["job"], line["stream"], line["text"]) for line in lines} == {
        ("a", "out", "one"), ("a", "out", "\\xfftwo"), ("a", "err", "bad"),
    }  # fmt: skip
