"""What the keeper knows of one run. Used by the keeper, so os only."""

from __future__ import annotations

import os

from ramherd.keeper.adoption_socket import GONE
from ramherd.system.files import write_json

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

    from ramherd.keeper.output_log import Log
    from ramherd.keeper.stdin_writer import Feed


class Run:
    """One child: its pid, the pipes it prints into, and where they go."""

    def __init__(self, request: dict[str, Any], logs: dict[str, Log]) -> None:
        self.id: str = request["run"]
        self.dir: str = request["dir"]
        self.pid = GONE
        self.report = GONE
        self.pipes: dict[str, int] = {}
        # Of one that is asked more than once.
        self.feed: Feed | None = None
        self.logs = logs
        self.meta_at = 0.0
        self.meta_due = False
        # How to end it without a supervisor: files to write, then directories to remove.
        self.on_loss: dict[str, list[list[str]]] = request["on_loss"]
        self.dirs: list[str] = request["dirs"]

    def meta(self) -> dict[str, Any]:
        return {name: log.meta() for name, log in self.logs.items()}

    def write(self, name: str, value: dict[str, Any]) -> None:
        try:
            write_json(f"{self.dir}/{name}", value)
        except OSError as error:  # a full disk: the supervisor is told all the same
            say(f"cannot write {self.dir}/{name}: {error.strerror}")


def say(text: str) -> None:
    """Into keeper.err, if its disk takes it."""
    try:
        os.write(2, f"{text}\n".encode())
    except OSError:
        pass
