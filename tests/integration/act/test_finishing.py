"""The worktree of a job that has ended, on real git: what is committed, left out, left alone,
counted and removed. The user's checkout stays as it was.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import need
from ramherd.act.worktrees.finishing import finish
from ramherd.act.worktrees.making import argv_in, isolate
from ramherd.core.model import Brief, Job, Tree
from support.make import HERD

AS_TEST = (
    'git config user.name "A User"; git config user.email user@example.org; '
    "git config commit.gpgSign true; git config gpg.program false; "
)
SUBJECT = "ramherd: uncommitted changes of fix it"


@pytest.fixture(autouse=True)
def no_user_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git finds no name and no address but those that a test sets."""
    need("git", "git")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    for role in ("AUTHOR", "COMMITTER"):
        for key in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{key}", raising=False)


def git(where: Path | str, *args: str) -> str:
    """Without the hooks that a test has made."""
    command = ("git", "-C", str(where), "-c", "user.name=t", "-c", "user.email=t@example.org")
    env = {**os.environ, "BY_TEST": "1"}
    return subprocess.check_output([*command, *args], env=env, text=True).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With a commit, hooks that fail, and work of the user that is not committed."""
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for name in ("kept", "changed", "deleted"):
        (path / name).write_text(f"{name}\nold\n")
    (path / ".gitignore").write_text("*.log\n")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "first")
    for name in ("pre-commit", "post-commit", "reference-transaction", "commit-msg"):
        hook = path / ".git/hooks" / name
        ran = f"touch {tmp_path}/{name}-ran; sleep 600; exit 1"
        hook.write_text(f'#!/bin/sh\n[ "$BY_TEST" ] || {{ {ran}; }}\n')
        hook.chmod(0o755)
    (path / "kept").write_text("the user's own\n")
    (path / "mine").write_text("the user's own\n")
    return path


class Tried:
    """A job in a worktree, what it does there, and what becomes of that."""

    def __init__(self, repository: Path, tmp_path: Path) -> None:
        brief = Brief("claude", "x", worktree=True)
        job = Job("01JOB0000000", HERD, "fix it", 1, (), str(repository), brief=brief)
        (job,) = isolate([job], tmp_path / "trees")
        assert job.brief is not None
        assert job.brief.tree is not None
        self.repository, self.tree, self.path = repository, job.brief.tree, job.brief.tree.path

    def do(self, script: str) -> None:
        """Hooks do nothing where the agent itself runs git."""
        argv = argv_in(self.tree, ("sh", "-ec", script))
        env = {**os.environ, "BY_TEST": "1", "GIT_CONFIG_COUNT": "1"}
        env |= {"GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
        done = subprocess.run(
            argv, env=env, text=True, capture_output=True, check=False, timeout=60,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def finish(self, most_s: float = 60.0) -> dict[str, Any]:
        with untouched(self.repository):
            return finish(self.tree, "fix it", most_s)

    def show(self, *what: str) -> str:
        return git(self.repository, "show", "-s", *what, self.tree.branch)

    def status(self) -> str:
        return git(self.path, "status", "--porcelain")

    def files(self, ref: str = "") -> set[str]:
        listed = git(self.repository, "ls-tree", "-r", "--name-only", ref or self.tree.branch)
        return set(listed.split("\n"))


@contextmanager
def untouched(repository: Path) -> Iterator[None]:
    """The user's checkout: branch, commit, index and files."""

    def read() -> list[str]:
        asked = ("status --porcelain", "rev-parse HEAD", "symbolic-ref HEAD", "diff")
        return [git(repository, *args.split()) for args in asked]

    before = read()
    yield
    assert read() == before
    assert list(repository.parent.glob("*-ran")) == []


@pytest.fixture
def tried(repository: Path, tmp_path: Path) -> Tried:
    return Tried(repository, tmp_path)


CHANGE = "echo new >> changed; rm deleted; mkdir -p a/b; echo 1 > a/b/new; echo 'x y' > 'two words'"


def test_uncommitted_changes_become_a_commit(tried: Tried) -> None:
    """On top of the job's own commits, as the user, without hooks and signature; all counted."""
    tried.do(f"{AS_TEST} git commit -q --allow-empty --no-gpg-sign -m own; {CHANGE}")
    found = tried.finish()

    assert (
        tried.show("--format=%s|%an|%ae|%cn|%G?") == f"{SUBJECT}|A User|user@example.org|A User|N"
    )
    assert git(tried.repository, "show", "-s", "--format=%s", f"{tried.tree.branch}^") == "own"
    assert tried.files() == {".gitignore", "kept", "changed", "a/b/new", "two words"}
    assert found == {
        "worktree": tried.path, "branch": tried.tree.branch, "worktree_note": None, "left_out": [],
        "files_changed": 4, "lines_added": 3, "lines_removed": 2, "merged_into": None,
    }  # fmt: skip
    assert tried.status() == ""


def test_finishing_again_changes_nothing(tried: Tried) -> None:
    """A supervisor may die after the commit, before it has recorded that."""
    tried.do(CHANGE)
    first = tried.finish()
    tip = tried.show("--format=%H")

    assert (tried.finish(), tried.show("--format=%H")) == (first, tip)


def test_one_that_was_killed_before_the_index_is_finished_by_the_next(tried: Tried) -> None:
    """The commit is made, and the index is that of before."""
    tried.do(CHANGE)
    index = Path(git(tried.path, "rev-parse", "--absolute-git-dir"), "index")
    before = index.read_bytes()
    tried.finish()
    tip = tried.show("--format=%H")
    index.write_bytes(before)
    index.with_suffix(".lock").touch()
    tried.finish()

    assert (tried.show("--format=%H"), tried.status()) == (tip, "")


def test_without_an_identity_it_is_ramherds(tried: Tried) -> None:
    """A machine on which nobody has told git a name."""
    tried.do(CHANGE)
    tried.finish()

    assert tried.show("--format=%an|%ae|%cn") == "ramherd|ramherd@localhost|ramherd"


def test_an_unchanged_worktree_is_removed(tried: Tried) -> None:
    """With its branch; files that git ignores do not count."""
    tried.do("echo 1 > a.log; mkdir locked; touch locked/b.log; chmod 500 locked")
    found = tried.finish()

    nothing = {"files_changed": 0, "lines_added": 0, "lines_removed": 0}
    assert found == {"worktree": None, "branch": None, **nothing}
    assert not os.path.exists(tried.path)
    assert "ramherd/" not in git(tried.repository, "branch")
    assert str(tried.path) not in git(tried.repository, "worktree", "list")


def test_a_job_that_never_ran_leaves_nothing(tried: Tried) -> None:
    """There is nothing to remove either."""
    assert tried.finish()["worktree"] is None
    assert "ramherd/" not in git(tried.repository, "branch")


def test_a_half_made_worktree_is_removed(tried: Tried) -> None:
    """Its files are missing because they were not checked out yet: nothing was deleted."""
    tried.do("true")
    made = Path(git(tried.path, "rev-parse", "--absolute-git-dir"), "ramherd-made")
    made.unlink()
    Path(tried.path, "changed").unlink()

    assert tried.finish()["worktree"] is None
    assert not os.path.exists(tried.path)


def test_secrets_large_files_and_ignored_files_are_left_out(tried: Tried) -> None:
    """Also what the agent has staged. They stay in the worktree, which stays for them."""
    tried.do(
        "echo s > .env; git add .env; echo s > .env.example; echo k > id_rsa; echo 1 > a.log; "
        "truncate -s 11M huge; truncate -s 11M changed; git init -q inner; touch inner/a"
    )
    found = tried.finish()

    large = "larger than 10 MiB"
    assert {one["path"]: one["why"] for one in found["left_out"]} == {
        ".env": "may hold secrets", "id_rsa": "may hold secrets", "a.log": "ignored",
        "huge": large, "changed": large, "inner/": "a git repository of its own",
    }  # fmt: skip
    assert tried.files() == {".gitignore", "kept", "changed", "deleted", ".env.example"}
    assert git(tried.repository, "show", f"{tried.tree.branch}:changed") == "changed\nold"
    assert Path(tried.path, ".env").read_text() == "s\n"
    assert found["files_changed"] == 1


def test_a_worktree_with_nothing_but_a_secret_stays(tried: Tried) -> None:
    """Nothing is committed, and nothing is lost."""
    tried.do("echo s > .env")
    found = tried.finish()

    assert (found["worktree"], found["files_changed"]) == (tried.path, 0)
    assert tried.show("--format=%H") == tried.tree.commit
    assert found["left_out"] == [{"path": ".env", "why": "may hold secrets"}]


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("git rebase -q other || true", "a rebase"),
        ("git merge -q other || true", "a merge"),
        ("git cherry-pick other || true", "a cherry-pick"),
        ("git bisect start", "a bisection"),
    ],
)
def test_a_worktree_in_the_middle_of_something_is_left_alone(
    tried: Tried, script: str, what: str
) -> None:  # fmt: skip
    """What is on its branch is counted."""
    tried.do(
        f"{AS_TEST} git config commit.gpgSign false; git checkout -q -b other; echo a > changed; "
        f"git commit -qam a; git checkout -q -; echo b > changed; git commit -qam b; {script}"
    )
    before = (tried.status(), tried.show("--format=%H"))
    found = tried.finish()

    assert found["worktree_note"] == f"in the middle of {what}: left alone"
    assert (found["worktree"], found["files_changed"]) == (tried.path, 1)
    assert (tried.status(), tried.show("--format=%H")) == before


def test_conflicts_of_a_stash_are_left_alone(tried: Tried) -> None:
    """There is no sign of an operation but the conflict itself."""
    tried.do(
        f"{AS_TEST} git config commit.gpgSign false; echo a > changed; git stash -q; "
        "echo b > changed; git commit -qam b; git stash pop -q || true"
    )

    assert tried.finish()["worktree_note"] == "with unresolved conflicts: left alone"


def test_locks_of_a_job_that_was_killed_are_removed(tried: Tried) -> None:
    """In the middle of `git commit`: index, HEAD, branch."""
    tried.do(CHANGE)
    git_dir = git(tried.path, "rev-parse", "--absolute-git-dir")
    for lock in ("index.lock", "HEAD.lock", "index.lock.lock"):
        Path(git_dir, lock).touch()
    (tried.repository / f".git/refs/heads/{tried.tree.branch}.lock").touch()
    found = tried.finish()

    assert (found["worktree_note"], found["files_changed"]) == (None, 4)


def test_a_lock_of_somebody_elses_process_is_left_alone(tried: Tried) -> None:
    """The user commits in the worktree just now."""
    tried.do(CHANGE)
    lock = Path(git(tried.path, "rev-parse", "--absolute-git-dir"), "index.lock")
    lock.touch()
    with subprocess.Popen(["sleep", "60"], cwd=tried.path) as other:
        found = tried.finish()
        other.kill()

    note = f"index.lock is held by process {other.pid}: left alone"
    assert (found["worktree_note"], lock.exists()) == (note, True)
    assert tried.show("--format=%H") == tried.tree.commit


@pytest.mark.parametrize("script", ["git checkout -q --detach", "git checkout -q -b mine"])
def test_commits_beside_the_jobs_branch_are_brought_to_it(tried: Tried, script: str) -> None:
    """The agent has checked out no branch, or one that it made."""
    commit = "git commit -q --allow-empty --no-gpg-sign -m own"
    tried.do(f"{AS_TEST} {script}; {commit}; {CHANGE}")
    found = tried.finish()
    log = git(tried.repository, "log", "--format=%s", tried.tree.branch)

    assert log.split("\n") == [SUBJECT, "own", "first"]
    assert (found["files_changed"], found["worktree_note"], tried.status()) == (4, None, "")
    assert git(tried.path, "symbolic-ref", "--short", "HEAD") == tried.tree.branch


@pytest.mark.parametrize("script", ["git checkout -q --detach", "git checkout -q -b mine"])
def test_commits_without_changes_are_brought_to_it_too(tried: Tried, script: str) -> None:
    """They would be nowhere else, or on a branch that nobody knows of."""
    tried.do(f"{AS_TEST} {script}; git commit -q --allow-empty --no-gpg-sign -m own")
    tried.finish()

    assert git(tried.repository, "log", "--format=%s", tried.tree.branch) == "own\nfirst"


def test_a_branch_of_the_user_is_not_changed(tried: Tried) -> None:
    """The agent works on one: the commit is on the job's branch, the user's stays where it was."""
    git(tried.repository, "branch", "release")
    os.utime(tried.repository / ".git/logs/refs/heads/release")
    log = tried.repository / ".git/logs/refs/heads/release"
    log.write_text(log.read_text().replace("> 1", "> 0"))
    tried.do(f"git checkout -q release; {CHANGE}")
    before = git(tried.repository, "rev-parse", "release")
    tried.finish()

    assert git(tried.repository, "rev-parse", "release") == before
    assert tried.show("--format=%s") == SUBJECT


def test_two_lines_of_work_get_two_branches(tried: Tried) -> None:
    """Commits on the job's branch, and then others from the first commit on: none is lost."""
    commit = "git commit -q --allow-empty --no-gpg-sign -m"
    tried.do(f"{AS_TEST} {commit} one; git checkout -q --detach HEAD^; {commit} two; {CHANGE}")
    found = tried.finish()
    second = f"{tried.tree.branch}-2"

    assert git(tried.repository, "log", "--format=%s", tried.tree.branch) == "one\nfirst"
    assert git(tried.repository, "log", "--format=%s", second).split("\n")[:2] == [SUBJECT, "two"]
    assert found["worktree_note"] == f"the last changes are on branch {second}"
    assert tried.status() == ""


def test_submodules(tried: Tried, tmp_path: Path) -> None:
    """Their commit is recorded; what is not committed inside cannot be, and is listed."""
    other = tmp_path / "lib"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "lib")
    tried.do(
        f"{AS_TEST} git submodule --quiet add {other} lib; git commit -q --no-gpg-sign -m sub; "
        "cd lib; git -c user.name=t -c user.email=t@t commit -q --no-gpg-sign --allow-empty -m x; "
        "touch new"
    )
    found = tried.finish()

    assert found["left_out"] == [{"path": "lib", "why": "changes inside of a submodule"}]
    assert found["worktree_note"] == "commits of submodule lib are only in it"
    recorded = git(tried.repository, "rev-parse", f"{tried.tree.branch}:lib")
    assert recorded == git(Path(tried.path, "lib"), "rev-parse", "HEAD")


def test_files_become_directories_and_links(tried: Tried) -> None:
    """And the other way round; with names that are hard to write."""
    tried.do(f"{AS_TEST} mkdir d; touch d/e; git add .; git commit -q --no-gpg-sign -m d")
    tried.do("rm changed; mkdir changed; touch changed/x; rm -r d; ln -s kept d; touch 'ü\n\"'")
    assert tried.finish()["worktree_note"] is None

    assert tried.status() == ""
    assert {"changed/x", "d"} < tried.files()


def test_a_worktree_that_is_none_any_more_is_left_alone(tried: Tried) -> None:
    """The file `.git` is gone, and there is a repository around: nothing is committed there."""
    tried.do(CHANGE)
    around = Path(tried.path).parent
    git(around, "init", "-q")
    Path(tried.path, ".git").unlink()
    found = tried.finish()

    assert found["worktree_note"] == "it is no longer a git worktree: left alone"
    assert (found["worktree"], git(around, "status", "--porcelain")) == (
        tried.path,
        "?? 01JOB0000000/",
    )


def test_commits_stay_when_the_directory_was_removed(tried: Tried) -> None:
    """By an agent or the user: the branch has them, and is named."""
    tried.do(f"{AS_TEST} {CHANGE}; git add .; git commit -q --no-gpg-sign -m own")
    shutil.rmtree(tried.path)
    found = tried.finish()

    counted = {"files_changed": 4, "lines_added": 3, "lines_removed": 2}
    assert found == {"worktree": None, "branch": tried.tree.branch, **counted}


def test_a_filter_that_hangs_or_fails_loses_nothing(tried: Tried) -> None:
    """The note has the reason; everything stays where it is."""
    tried.do(
        f"git config filter.slow.clean 'sleep 60'; {CHANGE}; echo '* filter=slow' > .gitattributes"
    )
    found = tried.finish(most_s=1.0)

    assert found["worktree_note"].startswith("changes were not committed: git ")
    assert "took longer than" in found["worktree_note"]
    assert Path(tried.path, "two words").exists()
    tried.do("git config filter.slow.clean false; git config filter.slow.required true")
    note = tried.finish()["worktree_note"]
    assert "clean filter 'slow' failed" in note
    tried.do("git config filter.slow.clean cat")
    assert tried.finish()["files_changed"] == 5


def test_without_git_nothing_is_lost(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was removed while the job ran."""
    tried.do(CHANGE)
    monkeypatch.setenv("PATH", "/nowhere")
    found = finish(tried.tree, "fix it", 60.0)

    assert found["worktree"] == tried.path
    assert found["worktree_note"]


def test_a_sparse_checkout_stays_sparse(tried: Tried) -> None:
    """Files that are not checked out are not deleted."""
    tried.do("git sparse-checkout set --no-cone changed; test ! -e kept; echo new >> changed")
    tried.finish()

    assert "kept" in tried.files()


def test_the_next_try_goes_on_in_the_worktree(tried: Tried) -> None:
    """A job that failed is retried where it was, with its changes committed."""
    tried.do("echo new > fresh")
    tried.finish()
    tried.do("test -e fresh; echo more > second")
    tried.finish()

    log = git(tried.repository, "log", "--format=%s", tried.tree.branch)
    assert log.split("\n") == [SUBJECT, SUBJECT, "first"]


def test_the_base_is_the_commit_that_the_worktree_was_made_from(tried: Tried) -> None:
    """Whatever the job was told before: a successor starts from the work of another job."""
    tried.do(CHANGE)
    found = finish(Tree(tried.tree.repository, "0" * 40, tried.path, tried.tree.branch), "x", 60.0)

    assert found["files_changed"] == 4


def test_on_a_full_disk_nothing_is_lost(tmp_path: Path) -> None:
    """The note says so; with some room again it is committed."""
    if os.getuid() != 0:
        pytest.skip("mounting is for root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount here")
    try:
        repository = disk / "repo"
        repository.mkdir()
        git(repository, "init", "-q", "-b", "main")
        git(repository, "commit", "-q", "--allow-empty", "-m", "first")
        tried = Tried(repository, disk)
        tried.do("head -c 100000 /dev/urandom > new")
        fill = disk / "fill"
        with suppress(OSError), fill.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096:
                pass
        note = tried.finish()["worktree_note"]
        assert note.startswith("changes were not committed: "), note
        assert os.path.getsize(f"{tried.path}/new") == 100_000
        fill.unlink()
        assert (tried.finish()["files_changed"], tried.status()) == (1, "")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
