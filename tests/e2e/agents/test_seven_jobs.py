"""The work of real agents reaches their user: seven jobs in one repository, up to the merge."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import AGENTS, Home, make_home
from e2e.agents.test_results import make_job
from e2e.agents.test_run_agents import herd_of
from integration.conftest import Ramherd
from llm import LLM

GOLDEN = Path(__file__).with_name("end_of_seven_jobs.txt")
# What gemini writes it has from codex, which it comes after.
EDITS = {name: f"echo by {name} > {name}.txt" for name in AGENTS} | {
    "gemini": "sed s/by/after/ codex.txt > gemini.txt"
}
FILES = {name: f"by {name}\n" for name in AGENTS} | {"gemini": "after codex\n"}
# What differs from run to run, in the order of replacement.
NORMAL = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "SESSION"),
    (r"ses_\w+", "SESSION"),
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "ID"),
    (r"(ramherd/\w+)-[0-9a-z]{8}\b", r"\1-ID"),
    (r"\$\d+\.\d+", "$COST"),
    (r"\b\d+(\.\d+)? (B|[KMG]iB)", "SIZE"),
    (r"\b(\d+m)?\d+(\.\d+)?s\b", "TIME"),
    (r"\b[\d,.]+k? tokens", "N tokens"),
)


def git(repository: Path, *args: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", "-C", str(repository), *args], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With work of the user's own that is not committed: a file that changed, and a new one."""
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    git(made, "config", "user.name", "A User")
    git(made, "config", "user.email", "user@example.org")
    (made / "README.md").write_text("read me\n")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "the beginning")
    (made / "README.md").write_text("read me first\n")
    (made / "notes.txt").write_text("mine\n")
    return made


@pytest.fixture
def homes(installed: None, tmp_path: Path, llm: LLM) -> dict[str, Home]:
    return {name: make_home(name, tmp_path, llm.url) for name in AGENTS}


def make_jobs(homes: dict[str, Home], repository: Path, llm: LLM) -> list[dict[str, Any]]:
    """Five that edit, one that is denied, and one that fails."""
    llm.add(
        {f"edit-{name}": [{"shell": edit}, {"say": f"Wrote {name}.txt."}]
         for name, edit in EDITS.items()}
        | {"denied": [{"shell": "touch no.txt"}, {"say": "I may not."}]}
    )  # fmt: skip
    where = {"cwd": str(repository), "skip_permissions": True}
    jobs = [make_job(home, f"edit [script edit-{name}]", **where) for name, home in homes.items()]
    jobs[AGENTS.index("gemini")]["after"] = ["codex"]
    denied = {**where, "name": "denied", "skip_permissions": False}
    jobs.append(make_job(homes["claude"], "write [script denied]", **denied))
    jobs.append(make_job(homes["codex"], "break [script broken]", **where, name="broken"))
    return jobs


def end_of(text: str) -> str:
    """What was printed after the last event."""
    lines = text.splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if re.match(r"\d\d:\d\d:\d\d ", line))
    return "".join(lines[last + 1 :])


def normal(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER")
    for pattern, word in NORMAL:
        text = re.sub(pattern, word, text)
    return text


def test_the_work_of_seven_jobs(
    homes: dict[str, Home], repository: Path, llm: LLM, tmp_path: Path
) -> None:
    """What was printed is known word by word; each merge brings the job's file; the user's own
    work is as it was; nothing is left behind.
    """
    herd = herd_of(homes["claude"], tmp_path)
    herd.env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "COLUMNS": "100"}
    text = "".join(json.dumps(job) + "\n" for job in make_jobs(homes, repository, llm))
    done = herd.run("run", "-", stdin=text)

    end = normal(end_of(done.stdout), tmp_path)
    assert done.returncode == 1, done.stderr
    assert end == GOLDEN.read_text(), end
    check_transcripts(herd)
    assert git(repository, "log", "--format=%s") == "the beginning\n"
    for name in AGENTS:
        merged = herd.run("merge", name)
        assert merged.returncode == 0, merged.stderr
    found = {name: (repository / f"{name}.txt").read_text() for name in AGENTS}
    assert found == FILES
    assert git(repository, "status", "--short") == " M README.md\n?? notes.txt\n"
    assert (repository / "README.md").read_text() == "read me first\n"
    assert (repository / "notes.txt").read_text() == "mine\n"
    check_nothing_left(herd, repository)


def check_transcripts(herd: Ramherd) -> None:
    """Of each agent its command and its answer; the refusal and the failure are marked."""
    shown = {name: herd.run("logs", name, "--out").stdout for name in (*AGENTS, "denied", "broken")}
    for name in AGENTS:
        assert f": {EDITS[name]}\n" in shown[name]
        assert shown[name].endswith(f"\nWrote {name}.txt.\n\n")
    denied = "* Bash: touch no.txt\n! denied: Bash: touch no.txt\n    error: "
    assert denied in shown["denied"]
    assert "! failed: " in shown["broken"]


def check_nothing_left(herd: Ramherd, repository: Path) -> None:
    """A job that changed nothing has no worktree any more; `drop` removes those of the others."""
    dropped = herd.run("drop", *AGENTS)
    assert dropped.returncode == 0, dropped.stderr
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--format=%(refname:short)") == "main\n"
    assert herd.keeper_errors == ""
