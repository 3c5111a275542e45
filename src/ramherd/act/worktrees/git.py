"""Runs git with a timeout and a closed environment: no hooks, signing, editor, pager, prompt or
background work, despite the user's shell and configuration. The user's identity and the other
settings of the repository apply.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from ramherd.core.errors import RamherdError
from ramherd.system.termination import kill_group

GIT_S = 60.0
# The variables of our own environment that git gets: the places of git and its configuration, and
# the user. GIT_DIR and similar ones are not passed: inside a git hook they name another repository.
PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "LD_LIBRARY_PATH",
    "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
)  # fmt: skip
CLOSED = {
    "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "SSH_ASKPASS": "false",
    "GIT_EDITOR": "false", "GIT_SEQUENCE_EDITOR": "false", "GIT_PAGER": "cat",
}  # fmt: skip
# A monitor or a garbage collection that git starts in the background would outlive the command.
SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgSign=false",
    "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
    "advice.detachedHead=false", "core.safecrlf=false",
)  # fmt: skip

# Files that git keeps in its folder of a worktree in the middle of an operation.
OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick",
    "BISECT_LOG": "a bisection",
}


class GitFailed(RamherdError):
    """git ended with an error, took too long, or is not installed. `line` is the line of `stderr`
    that has the reason; `code` is the exit status, or None.
    """

    def __init__(
        self, args: tuple[str, ...], line: str, code: int | None, stdout: str, stderr: str = ""
    ) -> None:
        super().__init__(f"git {' '.join(args[:2])}: {line}")
        self.line, self.code, self.stdout, self.stderr = line, code, stdout, stderr


def run_git(
    where: str, *args: str, stdin: str = "", env: Mapping[str, str] | None = None,
    timeout_s: float = GIT_S,
) -> str:  # fmt: skip
    """Returns the unchanged output of git: names of files are not always UTF-8 (surrogateescape),
    so use `-z` for them. `env` is added to the closed environment (GIT_INDEX_FILE, an identity).
    """
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    try:
        process = subprocess.Popen(
            ["git", "-C", where, *settings, *args], env={**closed_environment(), **(env or {})},
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", errors="surrogateescape", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise GitFailed(args, error.strerror or str(error), None, "") from None
    try:
        stdout, stderr = process.communicate(stdin or None, timeout_s)
    except subprocess.TimeoutExpired:
        raise GitFailed(args, f"took longer than {timeout_s:.0f} s", None, "") from None
    finally:
        # Kills its filters too: a filter may hold the pipe that we would read to its end.
        kill_group(process)
        close_pipes(process)
    if process.returncode != 0:
        raise GitFailed(args, find_reason(stderr), process.returncode, stdout, stderr)
    return stdout


def read_git(where: str, *args: str) -> str:
    """Returns the stripped output of git; "" if git fails or is not installed. Writes nothing, not
    even a refreshed index.
    """
    try:
        return run_git(where, *args, env={"GIT_OPTIONAL_LOCKS": "0"}).strip()
    except GitFailed:
        return ""


def find_operation(worktree: str) -> str:
    """The unfinished git operation in the worktree, or ""."""
    folder = read_git(worktree, "rev-parse", "--absolute-git-dir")
    found = (what for name, what in OPERATIONS.items() if os.path.exists(f"{folder}/{name}"))
    return next(found, "") if folder else ""


def closed_environment() -> dict[str, str]:
    return {**{name: os.environ[name] for name in PASSED if name in os.environ}, **CLOSED}


def close_pipes(process: "subprocess.Popen[str]") -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def find_reason(stderr: str) -> str:
    """The last line, without the advice that git prints after the reason."""
    lines = [line.strip() for line in stderr.strip().splitlines()]
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    return (fatal or lines or ["no message"])[-1]
