"""`ramherd plan` as a program: the same output twice, its cost, and jobs that it runs first."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

QUESTION = ("plan", "--agents", "50", "--ram", "16GiB", "--json")
MOST_RSS_KIB = 80 * 10**6 // 1024
MOST_CPU_S = 2.0
JOBS = """
[[job]]
name = "one"
command = "sleep 1.5"

[[job]]
name = "two"
command = "sleep 1.5"

[[job]]
name = "three"
command = "sleep 1.5"
after = ["one"]
"""


def ramherd(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ramherd", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_the_same_question_has_the_same_output_at_a_bounded_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Byte for byte; at most 2 s of processor time and 80 MB."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = ramherd(*QUESTION)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    second = ramherd(*QUESTION)

    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["draws"] >= 5
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= MOST_CPU_S
    assert rss_kib(*QUESTION) <= MOST_RSS_KIB


def rss_kib(*words: str) -> int:
    """The most that a process of its own had."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = (sys.executable, "-c", code, sys.executable, "-m", "ramherd", *words)
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def test_json_needs_no_chart() -> None:
    """plotext takes 17 MB and a third of a second: for a terminal only."""
    code = (
        "import sys; from ramherd.cli.main import call;"
        f"call({list(QUESTION)!r}); print('plotext' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "False"


def test_jobs_of_a_file_are_planned_and_some_are_run_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are done in the normal way, and the plan names them as its source."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "jobs.toml").write_text(JOBS)

    before = ramherd("plan", "jobs.toml", "--json", cwd=tmp_path)
    tried = ramherd("plan", "jobs.toml", "--try", "2", "--json", cwd=tmp_path)

    assert json.loads(before.stdout)["groups"][0]["history_runs"] == 0
    found = json.loads(tried.stdout)
    assert found["agents"] == 3
    assert found["groups"][0]["history_runs"] == 2
    assert "2 of 2 jobs done" in tried.stderr


def test_a_page_is_written(tmp_path: Path) -> None:
    """And a page that cannot be written is one line."""
    page = tmp_path / "plan.html"

    done = ramherd("plan", "--agents", "10", "--ram", "8GiB", "--html", str(page))
    refused = ramherd("plan", "--agents", "10", "--ram", "8GiB", "--html", "/proc/x.html")

    assert done.returncode == 0, done.stderr
    assert "<svg" in page.read_text()
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1, os.fspath(page)
