"""The commit that a worktree starts from, on real git."""

import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import need
from ramherd.act.worktrees import bases
from ramherd.act.worktrees.bases import Conflict, Tip, merge_tips, read_tip
from ramherd.act.worktrees.git import GitFailed, read_git, run_git
from ramherd.act.worktrees.making import argv_in, isolate
from ramherd.act.worktrees.worktree_process import WorktreeProcess, merge_task
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief, Job, Tree
from support.fakes import FakePen
from support.make import HERD

TEXT = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("git", "git")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with one commit."""
    path = tmp_path / "my repo"
    path.mkdir()
    (path / "file").write_text(TEXT)
    git(path, "init", "-q", "-b", "main")
    commit(path, "first")
    return path


def git(where: Path, *args: str) -> str:
    return run_git(str(where), *args).strip()


def commit(where: Path, message: str) -> str:
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def asked(name: str, cwd: Path, *, after: tuple[str, ...] = (), **brief: Any) -> Job:
    made = Brief("claude", "do it", **brief)
    return Job(f"01ID{name}", HERD, name, 1, (), str(cwd), after=after, brief=made)


def tree_of(job: Job) -> Tree:
    assert job.brief is not None
    assert job.brief.tree is not None
    return job.brief.tree


def branch(top: Path, name: str, change: Callable[[Path], object], start: str = "main") -> Tip:
    """A branch with one change on top."""
    path = top.parent / f"tree-{name}"
    git(top, "worktree", "add", "-q", "-b", name, str(path), start)
    change(path)
    return Tip(name, commit(path, name), name, str(path))


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda path: (path / name).write_text(text)


def files_of(top: Path, commit: object) -> list[str]:
    assert isinstance(commit, str), commit
    return git(top, "ls-tree", "-r", "--name-only", commit).splitlines()


def test_a_successor_names_those_it_starts_from(top: Path, tmp_path: Path) -> None:
    """In the listed order: agents in worktrees of the same checkout, and no others."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x").write_text("x")
    commit(other, "first")
    command = Job("01C", HERD, "command", 1, ("true",), str(top))
    after = ("b", "far", "command", "a")
    jobs = isolate(
        [
            asked("a", top), asked("b", top), asked("far", other), command,
            asked("c", top, after=after), asked("d", top, after=after, base="HEAD"),
        ],
        tmp_path / "trees",
    )  # fmt: skip

    assert tree_of(jobs[4]).parents == ("01IDb", "01IDa")
    assert tree_of(jobs[5]).parents == ()
    assert tree_of(jobs[0]).parents == ()


@pytest.mark.parametrize("name", ["v1", "v1^{commit}", "old", "HEAD~1"])
def test_a_base_is_a_branch_a_tag_or_a_commit(top: Path, tmp_path: Path, name: str) -> None:
    """A job that names one gets a worktree, also when it is alone."""
    first = git(top, "rev-parse", "HEAD")
    git(top, "tag", "-a", "v1", "-m", "one")
    git(top, "branch", "old")
    (top / "second").write_text("2")
    commit(top, "second")
    (job,) = isolate([asked("a", top, base=name)], tmp_path / "trees")

    assert tree_of(job).commit == first


@pytest.mark.parametrize(
    ("keys", "error", "hint"),
    [
        ({"base": "mian"}, "key 'base': .* has no branch, tag or commit 'mian'", "main"),
        ({"base": "main", "worktree": False}, "base 'main' needs a worktree", "remove"),
    ],
)
def test_a_base_that_cannot_be_is_refused(
    top: Path, tmp_path: Path, keys: dict[str, Any], error: str, hint: str
) -> None:
    """Before anything starts, in one line."""
    with pytest.raises(UsageError, match=error) as caught:
        isolate([asked("a", top, **keys)], tmp_path / "trees")

    assert hint in caught.value.hint


@pytest.mark.parametrize("first", [True, False])
def test_a_successor_that_would_not_see_the_changes_is_refused(
    top: Path, tmp_path: Path, first: bool
) -> None:
    """One works in the checkout, the other in a worktree. With a base, `after` is order only."""
    own: dict[str, Any] = {"worktree": False if first else None}
    others: dict[str, Any] = {"worktree": None if first else False}
    jobs = [asked("a", top, **own), asked("b", top, after=("a",), **others)]
    with pytest.raises(UsageError, match="job b: it would not see what a changed: a works in"):
        isolate(jobs, tmp_path / "trees")
    jobs[1] = asked("b", top, after=("a",), base="HEAD", **others)

    isolate(jobs, tmp_path / "trees")


def test_agents_that_would_share_a_repository_without_commits_are_refused(tmp_path: Path) -> None:
    """They have no worktrees, so they would write over each other. Asked for, they may."""
    git(tmp_path, "init", "-q")
    with pytest.raises(UsageError, match="has no commit") as caught:
        isolate([asked("a", tmp_path), asked("b", tmp_path, after=("a",))], tmp_path / "trees")
    together = [
        asked("a", tmp_path, worktree=False),
        asked("b", tmp_path, after=("a",), worktree=False),
    ]

    assert isolate(together, tmp_path / "trees") == together
    assert isolate([asked("a", tmp_path)], tmp_path / "trees")[0].brief == Brief("claude", "do it")
    hint = caught.value.hint.partition(";")[0]
    subprocess.run(["sh", "-c", hint], check=True, capture_output=True)
    assert tree_of(isolate([asked("a", tmp_path, worktree=True)], tmp_path / "trees")[0]).commit


def test_tips_are_merged_in_their_order(top: Path) -> None:
    """Changes of one file too, where they do not touch. The commit names the jobs and the user,
    and no hook or signature is asked for.
    """
    a = branch(top, "a", write("a", "1"))
    b = branch(top, "b", write("file", TEXT.replace("line 3\n", "changed\n")))
    c = branch(top, "c", write("file", TEXT.replace("line 17\n", "changed\n")))
    git(top, "config", "commit.gpgSign", "true")
    git(top, "config", "gpg.program", "false")
    merged = merge_tips(str(top), [a, b, c])

    assert files_of(top, merged) == ["a", "file"]
    assert git(top, "show", f"{merged}:file").count("changed") == 2
    shown = git(top, "log", "-1", "--format=%s|%an <%ae>|%P", str(merged))
    assert shown.startswith("ramherd: merge a and b and c|Ada <ada@example.org>|")
    assert shown.endswith(c.commit)
    assert git(top, "status", "--porcelain") == ""


def test_a_tip_that_has_another_in_it_is_taken_as_it_is(top: Path) -> None:
    """In either order, and no commit is made."""
    a = branch(top, "a", write("a", "1"))
    b = branch(top, "b", write("b", "1"), start="a")
    start = Tip("c", git(top, "rev-parse", "main"), "c", "")

    assert merge_tips(str(top), [a, b]) == b.commit
    assert merge_tips(str(top), [b, a, start]) == b.commit
    assert merge_tips(str(top), [a]) == a.commit


def test_a_conflict_names_the_two_branches_and_the_files(top: Path) -> None:
    """Of three, those that conflict by themselves. Names of files are as they are."""
    odd = "odd\n\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    a = branch(top, "a", lambda path: [write(n, "a")(path) for n in ("file", odd, "a")])
    b = branch(top, "b", write("b", "1"))
    c = branch(top, "c", lambda path: [write(n, "c")(path) for n in ("file", odd)])
    before = git(top, "for-each-ref")
    found = merge_tips(str(top), [a, b, c])

    assert found == Conflict(a, c, ("file", odd))
    assert git(top, "for-each-ref") == before
    assert git(top, "status", "--porcelain") == ""


def test_a_conflict_that_the_user_resolved_is_none(top: Path) -> None:
    """In the branch of a predecessor, or in the branch that is checked out."""
    a, b = branch(top, "a", write("file", "a")), branch(top, "b", write("file", "b"))
    tips = [a, b]
    assert isinstance(merge_tips(str(top), tips), Conflict)
    git(top, "merge", "-q", "a")
    git(top, "merge", "-q", "-s", "ours", "b")

    assert merge_tips(str(top), tips) == git(top, "rev-parse", "main")
    git(top, "reset", "-q", "--hard", "main~1")
    git(Path(a.path), "merge", "-q", "-s", "ours", "b")
    resolved = replace(a, commit=git(top, "rev-parse", "a"))
    assert merge_tips(str(top), [resolved, b]) == resolved.commit


def test_an_old_git_merges_in_a_worktree_of_its_own(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.38 git cannot merge without files. Nothing of it stays."""
    a, b = branch(top, "a", write("a", "1")), branch(top, "b", write("file", "b"))
    c = branch(top, "c", write("file", "c"))
    new = merge_tips(str(top), [a, b]), merge_tips(str(top), [a, b, c])
    monkeypatch.setattr(bases, "MERGE_TREE", (99, 0))
    old = merge_tips(str(top), [a, b]), merge_tips(str(top), [a, b, c])

    assert old[1] == new[1]
    assert git(top, "rev-parse", f"{old[0]}^{{tree}}") == git(
        top, "rev-parse", f"{new[0]}^{{tree}}"
    )
    assert "ramherd-merge-" not in git(top, "worktree", "list")


def test_without_an_identity_ramherd_commits(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git would refuse: the merge is nobody's else."""
    a, b = branch(top, "a", write("a", "1")), branch(top, "b", write("b", "1"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(top, "config", "user.useConfigOnly", "true")
    merged = merge_tips(str(top), [a, b])

    assert git(top, "log", "-1", "--format=%an|%cn", str(merged)) == "ramherd|ramherd"


def test_a_tip_is_the_branch_or_the_commit_that_it_started_from(top: Path) -> None:
    """ramherd removes a branch without changes. One with changes was removed by the user: then it
    is what is checked out.
    """
    start, a = git(top, "rev-parse", "main"), branch(top, "a", write("a", "1"))
    tree = Tree(str(top), start, a.path, "a")

    assert read_tip("one", tree, is_changed=True) == Tip("one", a.commit, "a", a.path)
    gone = replace(tree, branch="gone")
    assert read_tip("one", gone, is_changed=False).commit == start
    (top / "merged").write_text("by hand")
    head = commit(top, "merged by hand, and its branch removed")
    assert read_tip("one", gone, is_changed=True).commit == head


def test_histories_that_have_nothing_in_common_fail(top: Path) -> None:
    """With git's own words."""
    a = branch(top, "a", write("a", "1"))
    other = git(top, "commit-tree", "-m", "other", f"{a.commit}^{{tree}}")
    with pytest.raises(GitFailed, match="unrelated histories"):
        merge_tips(str(top), [a, Tip("b", other, "b", "")])


def test_a_worktree_starts_from_the_merged_commit(top: Path, tmp_path: Path) -> None:
    """As the run makes it."""
    a, b = branch(top, "a", write("a", "1")), branch(top, "b", write("b", "2"))
    (job,) = isolate([asked("c", top, worktree=True)], tmp_path / "trees")
    merged = merge_tips(str(top), [a, b])
    assert isinstance(merged, str)
    tree = replace(tree_of(job), commit=merged)
    done = subprocess.run(argv_in(tree, ("cat", "a", "b")), capture_output=True, check=True)

    assert done.stdout == b"12"
    assert read_git(str(top), "rev-parse", tree.branch) == merged


def test_a_job_after_hundreds_of_others(top: Path, tmp_path: Path) -> None:
    """What the process is asked is longer than the kernel allows for one argument."""
    job, earlier = isolate([asked("first", top), asked("next", top)], tmp_path / "trees")
    task = merge_task(job, [(earlier, False)])
    process = WorktreeProcess(
        "run", job, FakePen("run", 0, 0.0), time.monotonic(), folder=tmp_path,
        task={**task, "unused": "x" * 200_000},
    )  # fmt: skip
    while (found := process.receive()) is None:
        select.select([process], [], [], 10)

    assert found["commit"] == git(top, "rev-parse", "HEAD")
    assert not list(tmp_path.glob(".input-*"))
