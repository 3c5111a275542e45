"""A real claude with the hook in its settings, and a language model of our own."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.agent_home import INSTALLED, claude
from integration.conftest import await_
from llm import LLM


@dataclass
class Session:
    process: "subprocess.Popen[str]"

    def result(self) -> dict[str, Any]:
        """Its last event, when it has ended by itself."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err + out[-2000:]
        last: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert last["type"] == "result"
        return last

    def tell(self, **message: object) -> None:
        """To one that was started with `--input-format stream-json`."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


class World:
    """Sessions that share one machine, which ramherd thinks has `budget`."""

    def __init__(self, place: Path, llm: LLM) -> None:
        self.place, self.llm = place, llm
        self.sessions: list[Session] = []
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config"),
            "RAMHERD_RUNTIME_DIR": str(place / "runtime"), "HOME": str(place / "home"),
            "CLAUDE_CONFIG_DIR": str(place / "claude"), **claude(place / "home", llm.url),
        }  # fmt: skip
        for name in ("home", "work"):
            (place / name).mkdir()
        install = [sys.executable, "-m", "ramherd", "hook", "install", "claude"]
        subprocess.run(install, env=self.env, check=True, capture_output=True)

    def limit(self, slots: int, sessions: int = 1) -> None:
        """SlotLimits for so many subagents: each session itself holds 110 to 400 MiB."""
        self.env["RAMHERD_SUBAGENT_MEMORY"] = f"{512 * sessions}MiB"
        self.env["RAMHERD_BUDGET"] = f"{(512 * slots + 450) * sessions}MiB"

    def start(self, script: str, *flags: str, env: Mapping[str, str] | None = None) -> Session:
        command = [
            str(INSTALLED / "claude"),
            "-p",
            f"go [script {script}]",
            "--output-format",
            "stream-json",
        ]
        command += ["--verbose", *(flags or ("--dangerously-skip-permissions",))]
        # With a pipe it would wait three seconds for more of the prompt.
        stdin = subprocess.PIPE if "--input-format" in flags else subprocess.DEVNULL
        process = subprocess.Popen(
            command, env={**self.env, **(env or {})}, cwd=self.place / "work", text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.sessions.append(Session(process))
        return self.sessions[-1]

    def slots(self) -> list[tuple[str, str]]:
        """Owner and key of each slot, given or waited for."""
        return self._read("SELECT owner, key FROM leases WHERE kind = 'subagent'")

    def line(self) -> list[tuple[str, str]]:
        """Owner and call of each subagent that waits."""
        return self._read("SELECT owner, call FROM waiters")

    def _read(self, statement: str) -> list[tuple[str, str]]:
        path = self.place / "runtime/ledger.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path, timeout=5)) as db:
            return [(owner, key) for owner, key in db.execute(statement)]

    def await_slots(self, count: int) -> None:
        await_(lambda: len(self.slots()) == count, f"{count} slots")

    def at_a_time(self, script: str, held_s: float) -> int:
        """The most conversations of this script that the model had open at once."""
        begun = sorted(talk.at_s for talk in self.llm.of(script) if talk.step == 0)
        return max(sum(at <= other < at + held_s for other in begun) for at in begun)

    def close(self) -> None:
        for session in self.sessions:
            if session.process.poll() is None:
                session.process.kill()
            session.process.communicate()
