"""A program that talks like claude, whose prompt is a script for the shell; and a repository for it
to work in.
"""

import subprocess
from pathlib import Path
from typing import Any

SCRIPT = """\
#!/bin/sh
case " $* " in
    *" --resume "*) cat > /dev/null ;;
    *) cat > "$0-$RAMHERD_JOB" ;;
esac
echo '{"type": "system", "subtype": "init", "session_id": "'$RAMHERD_JOB'"}'
/bin/sh "$0-$RAMHERD_JOB" >&2 || exit 1
echo '{"type": "result", "result": "Through.", "total_cost_usd": 0.5}'
"""
CONFIG = "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n"


def git_environment(folder: Path) -> dict[str, str]:
    """Neither the configuration of the machine nor that of its user decides."""
    (folder / "gitconfig").write_text(CONFIG)
    return {"GIT_CONFIG_GLOBAL": str(folder / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"}


class Workplace:
    """A repository with one file, jobs for agents in it, and what became of them."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.program, self.top = folder / "shell-agent", folder / "my repo"
        self.program.write_text(SCRIPT)
        self.program.chmod(0o755)
        env |= git_environment(folder)
        self.env = env
        self.top.mkdir()
        self.git("init", "-q")
        (self.top / "file").write_text("old\n")
        self.commit("first")

    def git(self, *args: str, where: str | Path | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(where or self.top), *args], env=self.env, check=False, text=True,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, where: str | Path | None = None) -> str:
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", message, where=where)
        return self.git("rev-parse", "HEAD", where=where)

    def job(self, name: str, do: str = "true", after: tuple[str, ...] = (), **keys: Any) -> Any:
        """What it changes is not committed. A command that fails in `do` fails the job."""
        return {
            "name": name, "agent": "claude", "prompt": f"set -e; {do}", "memory": "10MiB",
            "agent_program": str(self.program), "cwd": str(self.top), "after": list(after), **keys,
        }  # fmt: skip

    def branch_of(self, name: str) -> str:
        """Of the job's newest run."""
        found = self.git("branch", "--list", f"ramherd/{name}-*", "--format=%(refname:short)")
        assert len(found.splitlines()) == 1, found
        return found

    def files_of(self, name: str) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", self.branch_of(name)).splitlines()

    def worktree_of(self, name: str) -> str:
        listed = self.git("worktree", "list", "--porcelain").split("\n\n")
        (found,) = [one for one in listed if f"refs/heads/{self.branch_of(name)}" in one]
        return found.splitlines()[0].removeprefix("worktree ")
