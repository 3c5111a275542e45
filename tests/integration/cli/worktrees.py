"""A repository with jobs that work in worktrees of it, for verbs that bring changes to the user."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.conftest import Ramherd, need
from support.shell_agent import ShellAgent

TEXT = "".join(f"line {number}\n" for number in range(20))


@dataclass
class Project:
    """A user's checkout, and a ramherd whose jobs are scripts (`ShellAgent`)."""

    ramherd: Ramherd
    top: Path
    agent: ShellAgent

    def git(self, *args: str, where: Path | None = None) -> str:
        return subprocess.check_output(
            ["git", *args], cwd=where or self.top, env=self.ramherd.env, text=True,
            stderr=subprocess.STDOUT,
        ).strip()  # fmt: skip

    def commit(self, message: str, where: Path | None = None) -> str:
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", message, where=where)
        return self.git("rev-parse", "HEAD", where=where)

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.top / name).write_text(text)

    def job(self, name: str, script: str, **keys: Any) -> dict[str, Any]:
        return {
            "name": name, "prompt": script, "agent": "claude", "cwd": str(self.top),
            "agent_program": str(self.agent.program), "worktree": True, "memory": "20MiB", **keys,
        }  # fmt: skip

    def run_jobs(self, scripts: Mapping[str, str]) -> list[dict[str, Any]]:
        """Their results."""
        summary = self.ramherd.json([self.job(name, text) for name, text in scripts.items()])
        results: list[dict[str, Any]] = summary["results"]
        return results

    def call(self, *args: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """A verb, as the user types it in the checkout."""
        return subprocess.run(
            [sys.executable, "-m", "ramherd", *args], cwd=cwd or self.top, env=self.ramherd.env,
            text=True, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    @property
    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def make_project(ramherd: Ramherd, folder: Path, name: str = "my project") -> Project:
    need("git", "git")
    config = folder / "gitconfig"
    config.write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
    ramherd.env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(config)}
    ramherd.env["PYTHONPATH"] = ""
    top = folder / name
    top.mkdir()
    project = Project(ramherd, top, ShellAgent(folder / "agent"))
    (top / "file").write_text(TEXT)
    project.git("init", "-q")
    project.commit("first")
    return project
