"""Hooks called as claude calls them, by a process that stands for one."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from ramherd.hook.claude_settings import hook_command

# No other test, in whichever process, has a session of this name: its end ends processes.
SESSION_ID = f"sess-{os.getpid()}"
SESSION = Path(__file__).with_name("hooked_session.py")


class Session:
    """A process that calls hooks, as claude does."""

    def __init__(self, env: dict[str, str], cwd: Path, command: str = "") -> None:
        self.env, self.cwd = env, cwd
        self.command = command or hook_command(60)
        self.ended: dict[str, dict[str, Any]] = {}
        self.process = subprocess.Popen(
            [sys.executable, str(SESSION)], env=env, cwd=cwd, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def begin(self, name: str, event: str, **more: object) -> None:
        about = {"hook_event_name": event, "session_id": SESSION_ID, "cwd": str(self.cwd), **more}
        self.tell({"name": name, "command": self.command, "event": about})

    def tell(self, told: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()

    def call(self, name: str) -> None:
        self.begin(name, "PreToolUse", tool_name="Agent", tool_use_id=name)

    def await_end(self, name: str = "") -> dict[str, Any]:
        """The answer to this one, or to whichever ends next; none of them may fail."""
        assert self.process.stdout is not None
        while not name or name not in self.ended:
            end = json.loads(self.process.stdout.readline())
            assert end["code"] == 0, end
            self.ended[end["name"]] = json.loads(end["out"]) if end["out"] else {}
            if not name:
                return dict(end)
        return self.ended[name]

    def ask(self, event: str, **more: object) -> dict[str, Any]:
        name = f"ask-{len(self.ended)}-{event}"
        self.begin(name, event, **more)
        return self.await_end(name)

    def leases(self) -> list[tuple[str, str, int, float | None]]:
        with closing(sqlite3.connect(self.env["RAMHERD_RUNTIME_DIR"] + "/ledger.db")) as db:
            rows = db.execute("SELECT kind, key, bytes, waiting_since FROM leases")
            return [(kind, key, held, since) for kind, key, held, since in rows]

    def slots(self) -> list[str]:
        return [key for kind, key, held, _since in self.leases() if kind == "subagent" and held]

    def waiting(self) -> list[str]:
        return [key for _kind, key, _held, since in self.leases() if since is not None]

    def line(self) -> list[str]:
        """Calls of all sessions that wait for anything, the oldest first."""
        with closing(sqlite3.connect(self.env["RAMHERD_RUNTIME_DIR"] + "/ledger.db")) as db:
            return [call for (call,) in db.execute("SELECT call FROM waiters ORDER BY since")]

    def finish(self, agent: str, call: str) -> None:
        """A subagent in the foreground ends, and then its call."""
        self.ask("SubagentStop", agent_id=agent, agent_type="x", background_tasks=[])
        response = {"status": "completed", "agentId": agent}
        self.ask("PostToolUse", tool_name="Agent", tool_use_id=call, tool_response=response)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def session(ramherd: Ramherd, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """With settings and other variables, in a project of its own."""
    started: list[Session] = []
    (tmp_path / "project").mkdir()
    (tmp_path / "runtime").mkdir(mode=0o700, exist_ok=True)

    def start(
        command: str = "", variables: Mapping[str, str] | None = None, **settings: str
    ) -> Session:
        named = {f"RAMHERD_{name.upper()}": value for name, value in settings.items()}
        env = {**ramherd.env, **named, **(variables or {})}
        session = Session(env, tmp_path / "project", command)
        started.append(session)
        return session

    yield start
    for one in started:
        one.close()
    await_(lambda: waiting_hooks() == [], "the end of hooks whose session is gone")


def room_for(slots: int) -> dict[str, str]:
    """The session itself holds some 10 MiB."""
    return {"subagent_memory": "128MiB", "budget": f"{128 * slots + 100}MiB"}


def waiting_hooks() -> list[int]:
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        tag = f"RAMHERD_TEST={os.environ['RAMHERD_TEST']}".encode()
        if b"ramherd.hook" in words and tag in environ:
            found.append(pid)
    return found
