"""`ramherd attach`: a job's session on the user's terminal."""

import json
import sys
from pathlib import Path

import pytest

from integration.cli.worktrees import Project, make_project
from integration.conftest import Ramherd, await_
from support.terminals import Terminal, open_terminal


@pytest.fixture
def project(ramherd: Ramherd, tmp_path: Path) -> Project:
    return make_project(ramherd, tmp_path)


def attach(project: Project, *args: str) -> Terminal:
    argv = [sys.executable, "-m", "ramherd", "attach", "--pen", project.ramherd.pen, *args]
    return open_terminal(argv, project.ramherd.env | {"PS1": "", "ENV": ""})


def test_a_session_goes_on_by_hand(project: Project) -> None:
    """In the job's worktree, with its session, model and arguments; what it changes is committed,
    and the job stays as it ended.
    """
    keys = {"model": "haiku", "agent_args": ["--effort", "high"]}
    (result,) = project.ramherd.json([project.job("fix it", "echo 1 > a", **keys)])["results"]
    window = attach(project, "fix it")
    window.expect(f"session {result['session']} in {result['worktree']}")
    busy = project.call("merge", "fix it")
    assert "another ramherd merge, drop or attach is working on job fix it" in busy.stderr
    window.type("echo 2 > b; echo made-$RAMHERD_JOB\n")
    window.expect("made-0")
    window.type("exit 5\n")
    window.expect("fix it: 2 files, +2 -0 in branch ramherd/fix-it-")
    window.expect("ramherd merge 'fix it'")

    assert window.wait() == 5
    window.close()
    argv = project.agent.argv[-1]
    assert argv == ["--resume", result["session"], "--model", "haiku", "--effort", "high"]
    listed = [
        json.loads(line) for line in project.call("jobs", "--all", "--json").stdout.splitlines()
    ]
    assert {job["name"]: job["state"] for job in listed} == {
        "fix it": "done", "attach-fix it": "failed",
    }  # fmt: skip
    assert "fix it" in project.call("results").stdout
    merged = project.call("merge", "fix it")
    assert merged.returncode == 0, merged.stderr
    assert (project.top / "b").read_text() == "2\n"


def test_a_worktree_that_is_gone_is_made_again(project: Project) -> None:
    """One in which nothing was changed was removed; one with commits was removed by its user."""
    script = "echo 1 > a && git add -A && git commit -qm one"
    unchanged, changed = project.run_jobs({"unchanged": "true", "changed": script})
    project.git("worktree", "remove", changed["worktree"])
    for name, result in (("unchanged", unchanged), ("changed", changed)):
        window = attach(project, name)
        window.expect(f"session {result['session']}")
        window.type("ls\nexit\n")
        window.expect(f"{name}: " + ("nothing is changed" if name == "unchanged" else "1 file"))
        assert window.wait() == 0
        window.close()


def test_a_dropped_job_keeps_its_record(project: Project) -> None:
    """One line says that its worktree is made again; `show` has a command that works."""
    (result,) = project.run_jobs({"one": "echo 1 > a"})
    assert project.call("drop", "--force", "one").returncode == 0
    assert "continue   ramherd attach one\n" in project.call("show", "one").stdout
    window = attach(project, "one")
    window.expect("the worktree of job one was dropped: it is made again from")
    window.expect(f"session {result['session']}")
    window.type("ls\nexit\n")
    window.expect("one: nothing is changed")
    assert window.wait() == 0
    window.close()
    assert "1 file +1 -0 (dropped)" in project.call("show", "one").stdout


def test_what_cannot_be_attached_to(project: Project) -> None:
    """One line: a job that runs, a command, no terminal, an agent that has opened no session."""
    command = {"name": "cmd", "command": "true", "cwd": str(project.top)}
    project.ramherd.json([project.job("one", "echo 1 > a"), command])
    assert "attach needs a terminal" in project.call("attach", "one").stderr
    assert "is a command: it has no session" in project.call("attach", "cmd").stderr
    text = json.dumps(project.job("slow", f"until [ -e '{project.top}/go' ]; do sleep 0.02; done"))
    started = project.ramherd.start("run", "-", "--pen", project.ramherd.pen, stdin=text)
    await_(
        lambda: "job slow has not ended: it is running" in project.call("attach", "slow").stderr,
        "the job runs",
    )
    assert "ramherd cancel" in project.call("merge", "slow").stderr
    assert project.call("diff", "slow", "--json").returncode == 0
    (project.top / "go").touch()
    assert started.wait() == 0
