"""A worktree for each job that shares a repository, on real git."""

import subprocess
from pathlib import Path

import pytest

from integration.conftest import need
from ramherd.act.worktrees.making import argv_in, isolate
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief, Job, Tree
from support.make import HERD

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With one commit, and a folder in it."""
    need("git", "git")
    path = tmp_path / "repo"
    (path / "part").mkdir(parents=True)
    (path / "part/file").write_text("old\n")
    for args in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *IDENTITY, *args], cwd=path, check=True)
    return path


def asked(name: str, cwd: Path, worktree: bool | None = None) -> Job:
    brief = Brief("claude", "do it", worktree=worktree)
    return Job(f"01ID{name}", HERD, name, 1, (), str(cwd), brief=brief)


def tree_of(job: Job) -> Tree | None:
    return job.brief.tree if job.brief is not None else None


def trees(jobs: list[Job], folder: Path) -> list[Tree | None]:
    return [tree_of(job) for job in isolate(jobs, folder)]


def start(job: Job, *argv: str) -> "subprocess.CompletedProcess[str]":
    tree = tree_of(job)
    assert tree is not None
    return subprocess.run(argv_in(tree, argv), text=True, capture_output=True, check=False)


def test_only_jobs_that_share_a_repository_get_one(repository: Path, tmp_path: Path) -> None:
    """Unless they say otherwise; a command never does."""
    one, two = asked("one", repository), asked("two", repository / "part")
    command = Job("ID", HERD, "c", 1, ("true",), str(repository))

    assert trees([one, command], tmp_path) == [None, None]
    assert None not in trees([one, two], tmp_path)
    assert trees([one, two, asked("no", repository, worktree=False)], tmp_path)[2] is None
    assert trees([asked("yes", repository, worktree=True)], tmp_path) != [None]


def test_outside_of_a_repository_there_is_none(tmp_path: Path) -> None:
    """Who asked for one is told; so is one without a commit."""
    assert trees([asked("a", tmp_path), asked("b", tmp_path)], tmp_path) == [None, None]
    with pytest.raises(UsageError, match="is in no git repository"):
        isolate([asked("a", tmp_path, worktree=True)], tmp_path)
    subprocess.run([need("git", "git"), "init", "-q"], cwd=tmp_path, check=True)
    with pytest.raises(UsageError, match="has no commit"):
        isolate([asked("a", tmp_path, worktree=True)], tmp_path)


def test_a_run_works_in_its_own_copy(repository: Path, tmp_path: Path) -> None:
    """At the same place in it, and a second run finds what the first has done."""
    (job,) = isolate([asked("one", repository / "part", worktree=True)], tmp_path / "trees")
    first = start(job, "sh", "-c", "cat file; echo new > file")
    second = start(job, "cat", "file")

    assert (first.stdout, second.stdout) == ("old\n", "new\n"), first.stderr + second.stderr
    assert (repository / "part/file").read_text() == "old\n"


def test_one_that_was_half_made_is_made_anew(repository: Path, tmp_path: Path) -> None:
    """A run that was stopped in its checkout."""
    (job,) = isolate([asked("one", repository, worktree=True)], tmp_path / "trees")
    start(job, "rm", "-r", "part")
    (made,) = repository.glob(".git/worktrees/*/ramherd-made")
    made.unlink()

    assert start(job, "cat", "part/file").stdout == "old\n"


def test_many_are_made_at_once(repository: Path, tmp_path: Path) -> None:
    """git's own commands disturb each other: all get theirs in the end."""
    asked_for = [asked(f"job{number}", repository) for number in range(24)]
    jobs = isolate(asked_for, tmp_path / "trees")
    found = [tree for job in jobs if (tree := tree_of(job)) is not None]
    started = [
        subprocess.Popen(argv_in(tree, ("cat", "part/file")), stdout=subprocess.PIPE, text=True)
        for tree in found
    ]

    assert [process.communicate()[0] for process in started] == ["old\n"] * 24
