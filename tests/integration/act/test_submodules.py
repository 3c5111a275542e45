"""Repositories with submodules: worktrees have them, and successors what was committed in them."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from integration.act.test_worktree_bases import asked, commit, git, tree_of
from integration.act.test_worktree_bases import identity as identity  # noqa: PLC0414
from ramherd.act.worktrees.bases import merge_branches
from ramherd.act.worktrees.git import run_git
from ramherd.act.worktrees.making import argv_in, isolate
from ramherd.core.agent_task import MergedBase
from ramherd.core.model import Job, Tree

REMOTE = "https://example.org/lib.git"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with a submodule that has another one in it. Their remotes are gone."""
    for name, inner in (("inner", ""), ("lib", "inner"), ("my repo", "lib")):
        path = tmp_path / name
        path.mkdir()
        (path / "file").write_text(f"{name}\n")
        git(path, "init", "-q", "-b", "main")
        if inner:
            words = ("submodule", "add", "-q", f"{tmp_path}/{inner}", f"sub {inner}")
            git(path, "-c", "protocol.file.allow=always", *words)
        commit(path, "first")
    path = tmp_path / "my repo"
    update = ("submodule", "update", "-q", "--init", "--recursive")
    git(path, "-c", "protocol.file.allow=always", *update)
    git(path / "sub lib", "remote", "set-url", "origin", REMOTE)
    for name in ("inner", "lib"):
        (tmp_path / name).rename(tmp_path / f"gone-{name}")
    return path


def start(tree: Tree, script: str) -> "subprocess.CompletedProcess[str]":
    """A run of a job in its worktree."""
    return subprocess.run(
        argv_in(tree, ("sh", "-ec", script)), text=True, capture_output=True, check=False
    )


def trees_of(top: Path, *names: str) -> list[Tree]:
    jobs: list[Job] = isolate([asked(name, top) for name in names], top.parent / "trees")
    return [tree_of(job) for job in jobs]


def commit_in_submodule(name: str) -> str:
    return f"""
        cd 'sub lib'; echo {name} > {name}; git add .; git commit -qm {name}
        cd ..; git commit -qam {name}
    """


def test_a_worktree_has_the_submodules_of_the_checkout(top: Path) -> None:
    """All levels of them, without the network; their remotes are the user's."""
    (tree, _other) = trees_of(top, "a", "b")
    done = start(tree, "cat 'sub lib/file' 'sub lib/sub inner/file'; git status --porcelain")

    assert (done.stdout, done.stderr) == ("lib\ninner\n", "")
    assert git(Path(tree.path, "sub lib"), "remote", "get-url", "origin") == REMOTE
    assert git(top, "status", "--porcelain") == ""
    assert git(top, "config", "submodule.sub lib.url").endswith("/lib")


def test_one_that_the_user_has_not_is_left_empty(top: Path) -> None:
    """And one that the commit does not have is not made."""
    git(top, "checkout", "-q", "-b", "without")
    git(top, "rm", "-q", "sub lib")
    without = commit(top, "without")
    git(top, "checkout", "-q", "main")
    update = ("submodule", "update", "-q", "--init")
    git(top, "-c", "protocol.file.allow=always", *update)
    (one, other) = trees_of(top, "a", "b")
    assert start(replace(one, commit=without), "ls").stdout == "file\n"
    git(top, "submodule", "deinit", "-q", "-f", "--all")

    assert start(other, "ls 'sub lib'").stdout == ""


def test_a_successor_has_the_commits_in_submodules(top: Path) -> None:
    """Of one job, and of two of which one goes on from the other."""
    a, b, c, d = trees_of(top, "a", "b", "c", "d")
    assert start(a, commit_in_submodule("one")).returncode == 0
    merged = merge_branches(str(top), [("a", a, True)])
    b = replace(b, commit=merged.commit)
    done = start(b, f"cat 'sub lib/one'; {commit_in_submodule('two')}")
    assert (done.stdout, done.stderr) == ("one\n", "")
    done = start(c, "echo c > c; git add .; git commit -qm c")
    merged = merge_branches(str(top), [("c", c, True), ("a", a, True), ("b", b, True)])
    assert merged.error == ""
    done = start(replace(d, commit=merged.commit), "cat c 'sub lib/one' 'sub lib/two'")

    assert (done.stdout, done.stderr) == ("c\none\ntwo\n", "")
    assert git(top, "status", "--porcelain") == ""


def test_submodules_that_went_apart_are_a_conflict(top: Path) -> None:
    """Named like a file; in the submodule it is resolved as git says."""
    a, b = trees_of(top, "a", "b")
    assert start(a, commit_in_submodule("one")).returncode == 0
    assert start(b, commit_in_submodule("two")).returncode == 0
    found = merge_branches(str(top), [("a", a, True), ("b", b, True)])

    assert found == MergedBase(
        ours="a", theirs="b", path=a.path, branch=b.branch, files=("sub lib",)
    )
    run_git(f"{a.path}/sub lib", "fetch", "-q", f"{b.path}/sub lib", "HEAD")
    run_git(f"{a.path}/sub lib", "merge", "-q", "-m", "both", "FETCH_HEAD")
    run_git(a.path, "merge", "-q", "-s", "ours", "--no-commit", b.branch)
    run_git(a.path, "commit", "-qam", "both")
    assert merge_branches(str(top), [("a", a, True), ("b", b, True)]).commit
