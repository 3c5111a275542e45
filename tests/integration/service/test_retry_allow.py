"""`ramherd retry --allow`: a run that was denied a tool goes on with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from integration.cli.worktrees import Project, make_project
from integration.conftest import Ramherd
from integration.service.conftest import Service

RULE = "Bash(npm test)"


@pytest.fixture
def project(ramherd: Ramherd, tmp_path: Path) -> Project:
    return make_project(ramherd, tmp_path)


def check_continued(project: Project, session: str) -> None:
    """The same session, the rule, and a prompt that names it."""
    first, again = project.agent.argv
    assert session in first
    assert again[again.index("--resume") + 1] == session
    assert f"--allowedTools={RULE}".split()[0] in again
    assert f"allowed what you were denied before: {RULE}" in project.agent.prompts


def test_a_denied_run_goes_on_without_a_service(project: Project) -> None:
    """The job is done, and is done again: with the tool, in its session and its worktree."""
    project.agent.denies()
    project.agent.resumes_with("echo tested > tested")
    (before,) = project.run_jobs({"fix it": "echo 1 > a"})
    assert [one["allow"] for one in before["denied"]] == [RULE]
    refused = project.call("retry", "fix it")
    assert refused.returncode == 2
    assert "nothing to retry: job 'fix it' is done" in refused.stderr
    assert f"ramherd retry 'fix it' --allow '{RULE}'" in refused.stderr
    again = project.call("retry", "fix it", "--allow", RULE, "--json")

    assert again.returncode == 0, again.stderr
    (result,) = json.loads(again.stdout)["results"]
    assert (result["state"], result["runs"], result["denied"]) == ("done", 2, [])
    assert (result["session"], result["worktree"]) == (before["session"], before["worktree"])
    check_continued(project, before["session"])
    assert (Path(result["worktree"]) / "a").exists()
    assert (Path(result["worktree"]) / "tested").exists()


@pytest.mark.parametrize(
    ("name", "rule", "told"),
    [
        ("one", "Bash(", "is not a rule of claude"),
        ("cmd", RULE, "job cmd is a command"),
        ("free", RULE, "it has skip_permissions"),
    ],
)
def test_what_cannot_be_allowed(project: Project, name: str, rule: str, told: str) -> None:
    """One line, and nothing is queued."""
    free = project.job("free", "true", skip_permissions=True)
    command: dict[str, Any] = {"name": "cmd", "command": "true"}
    project.ramherd.json([project.job("one", "true"), free, command])
    refused = project.call("retry", name, "--allow", rule)

    assert refused.returncode == 2
    assert told in refused.stderr


def test_a_denied_run_goes_on_in_the_service(service: Service, tmp_path: Path) -> None:
    """The same through the API; then the service takes over a job of a `ramherd run`."""
    project = make_project(service.ramherd, tmp_path)
    project.agent.denies()
    project.agent.resumes_with("echo tested > tested")
    service.client.wait(service.submit(project.job("one", "echo 1 > a")))
    before = service.job("one")
    assert before["denied"]
    refused = project.call("retry", "one")
    assert f"--allow '{RULE}'" in refused.stderr
    wrong = project.call("retry", "one", "--allow", "Bash(")
    assert "is not a rule of claude" in wrong.stderr
    again = project.call("retry", "one", "--allow", RULE)
    assert again.returncode == 0, again.stderr
    service.client.wait(before["herd"])

    job = service.job("one")
    assert (job["state"], job["attempts"], job["denied"]) == ("done", 2, [])
    check_continued(project, before["session"])
    assert (Path(job["worktree"]) / "tested").exists()

    (own,) = project.ramherd.json([project.job("two", "echo 1 > b")], "--own")["results"]
    again = project.call("retry", "two", "--allow", RULE)
    assert again.returncode == 0, again.stderr
    service.client.wait(service.job("two")["herd"])
    assert service.job("two")["session"] == own["session"]
    assert (service.job("two")["attempts"], service.job("two")["denied"]) == (2, [])


def test_a_failed_run_goes_on_in_its_session(project: Project) -> None:
    """What was allowed before stays allowed."""
    project.agent.resumes_with("exit 1")
    project.run_jobs({"one": "exit 1"})
    for rule in (RULE, "edit"):
        assert project.call("retry", "one", "--allow", rule).returncode == 1
    argv = " ".join(project.agent.argv[-1])
    assert "--resume" in argv
    assert f"--allowedTools={RULE} --allowedTools=edit" in argv
