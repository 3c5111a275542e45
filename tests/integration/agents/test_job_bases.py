"""Agents of one repository after each other: a job starts from the branches of those before it."""

import json
from pathlib import Path
from typing import Any

import pytest

from integration.agents.shell_agent import Workplace
from integration.conftest import Ramherd, need


@pytest.fixture
def place(ramherd: Ramherd, tmp_path: Path) -> Workplace:
    need("git", "git")
    return Workplace(tmp_path, ramherd.env)


def states(summary: dict[str, Any]) -> dict[str, str]:
    return {one["job"]: one["state"] for one in summary["results"]}


def reason(summary: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one["reason"] for one in summary["results"] if one["job"] == name]
    return dict(found)


def test_a_successor_sees_what_it_waited_for(ramherd: Ramherd, place: Workplace) -> None:
    """Committed or not, and through a job without changes too; a command between them passes
    nothing on, and with a base `after` is order only. The checkout and what is not committed in it
    stay as they were.
    """
    (place.top / "mine").write_text("not committed")
    jobs = [
        place.job("a", "echo 1 > one; git add one; git commit -qm a"),
        place.job("idle", "cat one", ("a",)),
        place.job("b", "cat one; echo 2 > two", ("idle",)),
        place.job("c", "cat one two; echo 3 > three", ("b",)),
        {"name": "command", "command": "true", "after": ["a"], "cwd": str(place.top)},
        place.job("apart", "! cat one; echo 4 > four", ("command",)),
        place.job("order", "! cat one; echo 5 > five", ("a",), base="HEAD"),
    ]
    summary = ramherd.json(jobs)

    assert summary["done"] == 7, (summary["lines"], states(summary))
    assert place.files_of("c") == ["file", "one", "three", "two"]
    made = "ramherd: uncommitted changes of"
    log = place.git("log", "--format=%s", place.branch_of("c")).splitlines()
    assert log == [f"{made} c", f"{made} b", "a", "first"]
    assert place.git("status", "--porcelain") == "?? mine"
    assert "ramherd/idle" not in place.git("branch")


def test_several_branches_are_merged(ramherd: Ramherd, place: Workplace) -> None:
    """In the listed order, once for all that start from them: a run that fails is tried again in
    the same worktree.
    """
    again = "cat a b; [ -e tried ] || { touch tried; exit 1; }; echo d > d"
    jobs = [
        place.job("a", "echo a > a"),
        place.job("b", "echo b > b"),
        place.job("idle"),
        place.job("d", again, ("b", "idle", "a"), retries=1),
        place.job("e", "cat a b > e", ("b", "idle", "a")),
    ]
    summary = ramherd.json(jobs)

    assert summary["done"] == 5, summary["lines"]
    bases = [place.git("rev-parse", f"{place.branch_of(name)}^") for name in "de"]
    assert bases[0] == bases[1]
    assert place.files_of("d") == ["a", "b", "d", "file", "tried"]
    lines = place.git("log", "--first-parent", "--format=%s|%an", place.branch_of("d"))
    assert lines.splitlines() == [
        "ramherd: uncommitted changes of d|Ada",
        "ramherd: merge b and idle and a|Ada",
        "ramherd: uncommitted changes of b|Ada",
        "first|Ada",
    ]


def test_a_conflict_makes_the_job_wait(ramherd: Ramherd, place: Workplace) -> None:
    """Nothing else runs: `run` ends with 1, says which files and branches, and what to do. Jobs
    that wait for it wait on. Once it is resolved, a retry without a service runs them.
    """
    jobs = [
        place.job("a", "echo a > file"),
        place.job("b", "echo b > file"),
        place.job("c", "echo c > c", ("a", "b")),
        place.job("d", "echo d > d", ("c",)),
        place.job("e", "echo e > e", ("b",)),
    ]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    done = ramherd.run("run", "-", "--pen", ramherd.pen, stdin=text)

    assert done.returncode == 1, done.stderr
    worktree, branch = place.worktree_of("a"), place.branch_of("b")
    hint = f"(resolve it: git -C {worktree} merge {branch}, then git commit, then ramherd retry c)"
    assert f"waiting   c: a and b conflict in file {hint}" in done.stdout.splitlines()
    assert "3 of 5 jobs done (2 waiting)" in done.stdout
    assert "merge conflict (ramherd show)" in ramherd.run("jobs", "--all").stdout
    shown = " ".join(ramherd.run("show", "c").stdout.split())
    assert f"a and b conflict in file {hint}" in shown
    assert "ramherd/c" not in place.git("branch")
    assert place.git("status", "--porcelain") == ""
    place.git("merge", "-q", "-s", "ours", "--no-commit", branch, where=worktree)
    early = ramherd.run("retry", "c")
    assert early.returncode == 1
    middle = f"the worktree of a is in the middle of a merge: {worktree} (hint: ramherd retry c)"
    assert middle in early.stdout
    place.git("commit", "-q", "-m", "both", where=worktree)
    again = ramherd.run("retry", "c")
    assert again.returncode == 0, again.stderr
    assert "5 of 5 jobs done" in again.stdout
    assert place.files_of("d") == ["c", "d", "file"]


def test_a_predecessor_that_failed_cancels_its_successor(
    ramherd: Ramherd, place: Workplace
) -> None:
    """As between any two jobs."""
    jobs = [place.job("a", "exit 3"), place.job("b"), place.job("c", after=("b", "a"))]
    summary = ramherd.json(jobs)

    assert states(summary) == {"a": "failed", "b": "done", "c": "cancelled"}
    assert reason(summary, "c")["why"] == "dependency_failed"


def test_a_conflict_that_was_merged_into_the_users_branch_is_resolved(
    ramherd: Ramherd, place: Workplace
) -> None:
    """With the verbs of ramherd, which remove the branches: the job starts from what is checked
    out, and not from the commit at which the herd began.
    """
    jobs = [
        place.job("a", "echo a > file"),
        place.job("b", "echo b > file"),
        place.job("c", "cat file; echo c > c", ("a", "b")),
    ]
    assert states(ramherd.json(jobs)) == {"a": "done", "b": "done", "c": "waiting"}
    worktree = place.worktree_of("b")
    assert ramherd.run("merge", "a", "--drop").returncode == 0
    assert ramherd.run("merge", "b").returncode == 1
    Path(worktree, "file").write_text("both\n")
    place.commit("both", where=worktree)
    assert ramherd.run("merge", "b", "--drop").returncode == 0
    assert place.git("branch", "--list", "ramherd/*") == ""
    again = ramherd.run("retry", "c")

    assert "3 of 3 jobs done" in again.stdout, again.stderr
    assert place.git("show", f"{place.branch_of('c')}:file") == "both"


def test_agents_in_a_repository_without_commits(
    ramherd: Ramherd, place: Workplace, tmp_path: Path
) -> None:
    """Refused in one line, with two ways out; in one directory `after` is order only."""
    empty = tmp_path / "empty"
    place.git("init", "-q", str(empty))
    jobs = [
        place.job("a", "echo a > a", cwd=str(empty)),
        place.job("b", "cat a; echo b > b", ("a",), cwd=str(empty)),
    ]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    refused = ramherd.run("run", "-", stdin=text)
    assert refused.returncode == 2
    assert f"job a: no worktree: {empty} has no commit" in refused.stderr
    assert f"hint: git -C {empty} commit --allow-empty -m start; or --no-worktree" in refused.stderr

    assert ramherd.json(jobs, "--no-worktree")["done"] == 2
    assert sorted(path.name for path in empty.glob("[ab]")) == ["a", "b"]
    place.git("commit", "-q", "--allow-empty", "-m", "start", where=empty)
    (empty / "a").unlink()
    assert ramherd.json(jobs)["done"] == 2
    assert not (empty / "a").exists()


def test_agents_in_a_repository_with_a_submodule(
    ramherd: Ramherd, place: Workplace, tmp_path: Path
) -> None:
    """Each has it, and a successor what was committed in it."""
    lib = tmp_path / "lib"
    place.git("init", "-q", str(lib))
    (lib / "code").write_text("1\n")
    place.commit("lib", where=lib)
    place.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(lib), "lib")
    place.commit("with lib")
    lib.rename(tmp_path / "gone")
    jobs = [
        place.job("a", "cat lib/code; cd lib; echo 2 > code; git commit -qam two"),
        place.job("b", "cat lib/code; echo b > b"),
        place.job("c", "grep 2 lib/code; cat b; echo c > c", ("a", "b")),
    ]
    summary = ramherd.json(jobs)

    assert summary["done"] == 3, (summary["lines"], states(summary))
    assert place.git("status", "--porcelain") == ""
    assert (place.top / "lib/code").read_text() == "1\n"


def test_a_dry_run_shows_how_worktrees_are_made(
    ramherd: Ramherd, place: Workplace, tmp_path: Path
) -> None:
    """As a user would make them: from HEAD, from a branch, or from several, merged."""
    part = place.top / "part"
    part.mkdir()
    jobs = [
        place.job("a"), place.job("b", cwd=str(part)), place.job("c", after=("b", "a")),
    ]  # fmt: skip
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    lines = ramherd.run("run", "-", "--dry-run", stdin=text).stdout.splitlines()

    head, trees = place.git("rev-parse", "HEAD"), ramherd.state / "ramherd/worktrees"
    add = f"git -C '{place.top}' worktree add -B ramherd"
    assert [line.partition("-")[0] for line in lines[1::2]] == ["git "] * 3
    assert lines[1].startswith(f"{add}/a-")
    assert f" {head} && cd {trees}/" in lines[1]
    assert "/part && " in lines[3]
    a, b = (line.split()[7] for line in (lines[1], lines[3]))
    assert f" {b} && git -C {trees}/" in lines[5]
    assert f" merge {a} && cd {trees}/" in lines[5]
    assert not trees.exists()
