"""`ramherd diff`, `merge` and `drop`: what agents did reaches the user's branch, on real git."""

import json
import os
import shutil
from pathlib import Path

import pytest

from integration.cli.worktrees import TEXT, Project, make_project
from integration.conftest import Ramherd

COMMIT = "git add -A && git commit -q -m 'What the agent wrote'"


@pytest.fixture
def project(ramherd: Ramherd, tmp_path: Path) -> Project:
    return make_project(ramherd, tmp_path)


def test_changes_reach_the_users_branch(project: Project) -> None:
    """Two jobs, one of which committed: both are shown, merged and dropped; what the user has not
    committed stays as it is.
    """
    one, two = project.run_jobs(
        {"fix it": f"echo 1 > 'a b.txt' && {COMMIT}", "two": "sed -i 's/line 3$/LINE 3/' file"}
    )
    project.write(own="mine\n")
    shown = json.loads(project.call("diff", "--json", "fix it").stdout)
    assert (shown["files_changed"], shown["lines_added"], shown["lines_removed"]) == (1, 1, 0)
    assert shown["files"][0]["path"] == "a b.txt"
    assert shown["worktree"] == one["worktree"]
    assert "+LINE 3" in project.call("diff", "two").stdout
    assert project.call("diff", "two", "--name-only").stdout == "file\n"
    assert "1 file changed" in project.call("diff", "two", "--stat").stdout

    merged = project.call("merge", "fix it", "two", "--drop")
    assert merged.returncode == 0, merged.stderr
    assert "fix it is merged into main: 1 file, +1 -0" in merged.stdout
    assert "two is merged into main: 1 file, +1 -1" in merged.stdout
    assert (project.top / "a b.txt").read_text() == "1\n"
    assert "LINE 3\n" in (project.top / "file").read_text()
    assert (project.top / "own").read_text() == "mine\n"
    assert project.git("status", "--porcelain") == "?? own"
    assert project.branches == ["main"]
    assert not Path(two["worktree"]).exists()
    assert "What the agent wrote" in project.git("log", "--format=%s")
    gone = project.call("merge", "two")
    assert gone.returncode == 2
    assert "job two was merged into main and dropped: the worktree and the branch" in gone.stderr


def test_a_merged_job_says_so(project: Project) -> None:
    """Its counts stay its own, whatever was merged with it; dropped, it is not lost."""
    (result,) = project.run_jobs({"one": "echo 1 > a; echo 2 > b"})
    project.write(other="mine\n")
    project.commit("meanwhile")
    assert project.call("merge", "one").returncode == 0
    assert "nothing to merge" in project.call("merge", "one").stdout

    merged = f"2 files +2 -0 on {result['branch']}, merged into main"
    told = project.call("results").stdout
    assert merged in " ".join(told.split())
    assert "take it" not in told
    shown = project.call("show", "one").stdout
    assert merged in shown
    assert "ramherd diff one; ramherd drop one" in shown
    assert project.call("diff", "one", "--name-only").stdout == "a\nb\n"
    assert project.call("drop", "one").returncode == 0
    assert "2 files +2 -0 (merged into main)" in project.call("results").stdout


def test_changes_after_a_merge_are_not_merged(project: Project) -> None:
    """The next merge finds them; forced away, they are lost."""
    (result,) = project.run_jobs({"one": "echo 1 > a"})
    assert project.call("merge", "--squash", "one").returncode == 0
    assert json.loads(project.call("show", "--json", "one").stdout)["merged_into"] == "main"
    (Path(result["worktree"]) / "late").write_text("x\n")
    project.commit("late", where=Path(result["worktree"]))
    assert project.call("drop", "one").returncode == 1
    assert project.call("drop", "--force", "one").returncode == 0
    assert "1 file +1 -0 (dropped)" in project.call("results").stdout


def test_what_is_gone_is_explained(project: Project) -> None:
    """Removed by hand, never made because its job has not run, or without changes."""
    jobs = [
        project.job("one", "echo 1 > one"), project.job("idle", "true"),
        project.job("bad", "exit 3"), project.job("next", "true", after=["bad"]),
    ]  # fmt: skip
    one, *_others = project.ramherd.json(jobs)["results"]
    project.git("worktree", "remove", "--force", one["worktree"])
    project.git("branch", "-D", one["branch"])

    for verb in ("diff", "merge", "drop"):
        assert "ramherd did not remove them" in project.call(verb, "one").stderr
    assert "job one was dropped" in project.call("drop", "one").stderr
    assert "(dropped)" in project.call("results").stdout
    assert "job idle has no changes\n" in project.call("merge", "idle").stderr
    never = project.call("drop", "next").stderr
    assert "job next has no changes: it is cancelled, and its agent has not run" in never


def test_a_conflict_stays_in_the_worktree_of_the_job(project: Project) -> None:
    """The user's checkout is untouched; resolved there and committed, it is merged."""
    (result,) = project.run_jobs({"one": "echo theirs > file"})
    worktree = Path(result["worktree"])
    project.write(file="ours\n", other="dirty\n")
    project.git("commit", "-q", "-am", "ours")
    before = project.git("rev-parse", "HEAD")
    conflict = project.call("merge", "one")

    assert conflict.returncode == 1, conflict.stderr
    assert "one conflicts with your branch in 1 file" in conflict.stdout
    assert str(worktree) in conflict.stdout
    assert "ramherd merge --abort one" in conflict.stdout
    assert project.git("rev-parse", "HEAD") == before
    assert project.git("status", "--porcelain") == "?? other"
    again = project.call("merge", "one")
    assert again.returncode == 1
    assert "is in the middle of a merge" in again.stderr
    assert "undo it: ramherd merge --abort one" in again.stderr
    dropped = project.call("drop", "one")
    assert dropped.returncode == 1
    assert "job one has a merge that is not finished" in dropped.stderr
    assert "hint: undo it: ramherd merge --abort one, or lose" in dropped.stderr
    assert "undone" in project.call("merge", "--abort", "one").stdout
    assert project.git("status", "--porcelain", where=worktree) == ""
    found = json.loads(project.call("merge", "--json", "one").stdout)
    assert (found["merged"], found["conflicts"]) == (False, ["file"])
    project.call("merge", "--abort", "one")
    assert not json.loads(project.call("show", "--json", "one").stdout)["worktree_note"]
    conflict = project.call("merge", "one", "-m", "a b", "--drop")
    assert "ramherd merge one -m 'a b' --drop\n" in conflict.stdout
    (worktree / "file").write_text("both\n")
    project.commit("resolved", where=worktree)
    merged = project.call("merge", "one")
    assert merged.returncode == 0, merged.stderr
    assert (project.top / "file").read_text() == "both\n"


def test_work_that_is_not_committed_is_never_overwritten(project: Project) -> None:
    """Refused with the names where files overlap, tracked or not; merged where they do not."""
    project.run_jobs({"one": "echo theirs > file; echo theirs > new", "two": "echo 2 > two"})
    project.write(file=f"{TEXT}mine\n", new="mine\n")
    refused = project.call("merge", "one")
    assert refused.returncode == 1
    assert "has changes that are not committed in file" in refused.stderr
    project.git("stash", "-q")
    refused = project.call("merge", "one")
    assert "new" in refused.stderr
    assert "commit them or stash them" in refused.stderr
    project.git("stash", "pop", "-q")
    project.git("config", "merge.autoStash", "true")
    assert project.call("merge", "one").returncode == 1
    merged = project.call("merge", "two")

    assert merged.returncode == 0, merged.stderr
    assert (project.top / "file").read_text() == f"{TEXT}mine\n"
    assert (project.top / "new").read_text() == "mine\n"
    assert project.git("stash", "list") == ""


def test_squash_makes_one_commit_of_the_user(project: Project) -> None:
    """With the prompt as its text; then nothing is left to merge, and dropping loses nothing."""
    script = f"echo 1 > a; {COMMIT}; echo 2 > b; {COMMIT}; echo 3 > c"
    project.run_jobs({"one": script})
    project.write(other="x\n")
    head = project.commit("meanwhile")
    merged = project.call("merge", "--squash", "one")

    assert merged.returncode == 0, merged.stderr
    assert project.git("rev-parse", "HEAD^") == head
    assert project.git("log", "-1", "--format=%an <%ae>") == "Ada <ada@example.org>"
    message = project.git("log", "-1", "--format=%B")
    assert message.startswith("echo 1 > a; git add -A")
    assert "- What the agent wrote" in message
    assert [(project.top / name).exists() for name in "abc"] == [True] * 3
    assert "nothing to merge" in project.call("merge", "one").stdout
    dropped = project.call("drop", "one")
    assert dropped.returncode == 0, dropped.stderr
    assert project.branches == ["main"]


def test_hints_for_an_older_herd_mean_its_own_jobs(project: Project) -> None:
    """A name is that of the newest herd's job; `results HERD` and `show --herd` print the id."""
    old = project.ramherd.json([project.job("one", "echo old > a")])["herd"]
    project.run_jobs({"one": "echo new > a"})
    footer = project.call("results", old).stdout.splitlines()[-1]
    job = footer.split()[-1]
    assert f"ramherd diff {job}; ramherd merge {job}" in project.call("show", job).stdout
    assert "ramherd merge one" in project.call("results").stdout
    assert project.call("merge", job).returncode == 0
    assert (project.top / "a").read_text() == "old\n"


def test_drop_names_files_that_no_merge_would_save(project: Project) -> None:
    """Such as secrets, which are never committed."""
    (result,) = project.run_jobs({"one": "echo 1 > a; echo key > .env"})
    assert project.call("merge", "one").returncode == 0
    refused = project.call("drop", "one")
    assert "1 uncommitted file (.env)" in refused.stderr
    assert f"hint: copy them from {result['worktree']}, or lose them" in refused.stderr


def test_drop_refuses_to_lose_changes(project: Project) -> None:
    """It names the commits and the files; with --force they go."""
    (result,) = project.run_jobs({"one": f"echo 1 > a; {COMMIT}"})
    (Path(result["worktree"]) / "left out").write_text("x")
    refused = project.call("drop", "one")

    assert refused.returncode == 1
    assert "What the agent wrote" in refused.stderr
    assert "1 uncommitted file (left out)" in refused.stderr
    assert "ramherd drop --force one" in refused.stderr
    forced = project.call("drop", "--force", "--json", "one")
    assert forced.returncode == 0, forced.stderr
    assert json.loads(forced.stdout)["lost"]["files"] == ["left out"]
    assert project.branches == ["main"]
    assert "job one was dropped" in project.call("diff", "one").stderr
    listed = json.loads(project.call("jobs", "--all", "--json").stdout)
    assert listed["worktree"] is None


def test_a_successor_changed_what_it_changed_itself(project: Project) -> None:
    """Its diff begins where its predecessors ended; merged, it brings their changes along."""
    jobs = [
        project.job("one", "echo 1 > a"), project.job("two", "echo 2 > b"),
        project.job("last", "cat a b && echo 3 > c", after=["one", "two"]),
    ]  # fmt: skip
    assert project.ramherd.json(jobs)["done"] == 3
    assert project.call("diff", "last", "--name-only").stdout == "c\n"
    merged = project.call("merge", "last", "--json")
    assert json.loads(merged.stdout)["files_changed"] == 3
    for name in ("one", "two"):
        assert "nothing to merge" in project.call("merge", name, "--drop").stdout


def test_an_agent_that_ended_on_another_branch(project: Project) -> None:
    """What it left on the job's own branch is named, and dropping would lose it."""
    script = f"echo 1 > a; {COMMIT}; git checkout -q --detach HEAD^; echo 2 > b; {COMMIT}"
    project.run_jobs({"one": script})
    merged = project.call("merge", "one")

    assert (project.top / "b").exists(), merged.stderr
    assert not (project.top / "a").exists()
    other = merged.stdout.split("has other commits: ")[1].split()
    assert project.call("drop", "one").returncode == 1
    project.git(*other[1:])
    assert project.call("drop", "one").returncode == 0
    assert project.branches == ["main"]


def test_the_branch_is_enough(project: Project) -> None:
    """A worktree that the user has removed: shown and merged from its branch, which is checked out
    again where a merge needs files.
    """
    one, two = project.run_jobs({"one": f"echo 1 > a; {COMMIT}", "two": f"echo 2 > b; {COMMIT}"})
    project.git("worktree", "remove", "--force", one["worktree"])
    shutil.rmtree(two["worktree"])
    assert "+1" in project.call("diff", "one").stdout
    assert json.loads(project.call("diff", "two", "--json").stdout)["worktree"] is None
    project.write(other="x\n")
    project.commit("meanwhile")
    merged = project.call("merge", "one", "two")

    assert merged.returncode == 0, merged.stderr
    assert (project.top / "a").exists()
    assert (project.top / "b").exists()


def test_where_nothing_can_be_merged(project: Project) -> None:
    """One line for each: a detached HEAD, the job's own branch, a command, a job in the checkout, a
    repository that is gone.
    """
    alone = project.job("alone", "echo 1 > b", worktree=False)
    command = {"name": "cmd", "command": "true", "cwd": str(project.top)}
    (result, *_) = project.ramherd.json([project.job("one", "echo 1 > a"), alone, command])[
        "results"
    ]
    project.git("checkout", "-q", "--detach")
    assert "its HEAD is detached" in project.call("merge", "one").stderr
    project.git("worktree", "remove", "--force", result["worktree"])
    branch = next(name for name in project.branches if name.startswith("ramherd/one"))
    project.git("checkout", "-q", branch)
    assert "has the branch of the job itself checked out" in project.call("merge", "one").stderr
    assert "worked in" in project.call("diff", "alone").stderr
    assert "is a command" in project.call("drop", "cmd").stderr
    assert "did you mean" in project.call("merge", "on").stderr
    shutil.rmtree(project.top)
    for verb in ("diff", "merge", "drop"):
        gone = project.call(verb, "one", cwd=project.top.parent)
        assert gone.returncode == 2
        assert "the repository of job one is gone" in gone.stderr


def test_another_checkout_of_the_user(project: Project, tmp_path: Path) -> None:
    """The branch of the checkout in which the user stands takes the changes."""
    project.run_jobs({"one": "echo 1 > a"})
    project.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "second"))
    merged = project.call("merge", "one", cwd=tmp_path / "second")

    assert "merged into feature" in merged.stdout, merged.stderr
    assert (tmp_path / "second/a").exists()
    assert not (project.top / "a").exists()


def test_a_submodule_gets_the_commits_of_the_agent(project: Project, tmp_path: Path) -> None:
    """They are in the submodule of the job's worktree alone: dropped unmerged, they were lost."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "code").write_text("1\n")
    project.git("init", "-q", where=library)
    project.commit("library", where=library)
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "--quiet", "add", str(library), "lib")
    project.commit("with a library")
    init = "git -c protocol.file.allow=always submodule --quiet update --init"
    script = f"{init} && cd lib && echo 2 > code && git commit -qam inside && cd .. && {COMMIT}"
    project.run_jobs({"one": script})
    assert "lib: " in project.call("drop", "one").stderr
    merged = project.call("merge", "one")

    assert merged.returncode == 0, merged.stderr
    assert "git submodule update -- lib" in merged.stdout
    project.git("submodule", "--quiet", "update")
    assert (project.top / "lib/code").read_text() == "2\n"
    dropped = project.call("drop", "one")
    assert dropped.returncode == 0, dropped.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be another user")
def test_a_repository_of_another_user(project: Project) -> None:
    """git's own reason is the message."""
    project.run_jobs({"one": "echo 1 > a"})
    for path in (project.top, project.top / ".git"):
        os.chown(path, 12345, 12345)
    refused = project.call("diff", "one")

    assert refused.returncode != 0
    assert "dubious ownership" in refused.stderr
