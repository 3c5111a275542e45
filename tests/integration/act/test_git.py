"""The one way to run git: what it gives back, and what it keeps away from it."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from integration.conftest import need
from ramherd.act.worktrees.git import GitFailed, read_git, run_git

IDENTITY = {
    f"GIT_{who}_{what}": "test@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    need("git", "git")
    path = tmp_path / "repo"
    path.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    run_git(str(path), "commit", "-q", "--allow-empty", "-m", "first", env=IDENTITY)
    return path


def test_a_failure_has_the_last_line_of_git(repository: Path) -> None:
    """And its exit status; who only reads gets nothing."""
    with pytest.raises(GitFailed, match="git rev-parse --verify: Needed a single") as error:
        run_git(str(repository), "rev-parse", "--verify", "nothing")

    assert (error.value.code, error.value.line) == (128, "Needed a single revision")
    assert read_git(str(repository), "rev-parse", "--verify", "nothing") == ""


def test_git_that_is_not_there_is_a_failure(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a traceback."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailed, match="git status: No such file") as error:
        run_git(str(repository), "status")

    assert error.value.code is None


def test_git_that_takes_too_long_is_ended(repository: Path) -> None:
    """With everything that it started: a filter holds its pipes."""
    (repository / ".gitattributes").write_text("* filter=slow\n")
    run_git(str(repository), "config", "filter.slow.clean", "sleep 60")
    before_s = time.monotonic()
    with pytest.raises(GitFailed, match=r"git add -A: took longer than 0 s"):
        run_git(str(repository), "add", "-A", timeout_s=0.2)

    assert time.monotonic() - before_s < 10


def test_hooks_signing_and_the_shell_have_no_say(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that fails, a key that is not there, and the GIT_DIR of another repository."""
    hook = repository / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    run_git(str(repository), "config", "commit.gpgSign", "true")
    run_git(str(repository), "config", "gpg.program", "false")
    monkeypatch.setenv("GIT_DIR", os.devnull)
    run_git(str(repository), "commit", "-q", "--allow-empty", "-m", "second", env=IDENTITY)

    assert read_git(str(repository), "log", "--format=%s") == "second\nfirst"


def test_names_of_files_come_as_they_are(repository: Path) -> None:
    """Also those that are not UTF-8."""
    name = os.fsdecode(b"n\xff\nx")
    (repository / name).touch()

    assert run_git(str(repository), "ls-files", "-z", "--others") == f"{name}\0"
