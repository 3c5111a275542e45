"""`on_alert`: the user's command for each alert. The loop of a supervisor does not wait for it."""

import json
import os
import time
from dataclasses import dataclass, field

from ramherd.act.user_command import UserCommand
from ramherd.core.model import Event
from ramherd.jobs.schema import SHELL

MOST_AT_ONCE = 4


@dataclass
class AlertCommands:
    """RAMHERD_ALERT has the event as JSON. A command that takes longer than a minute is ended."""

    command: str | None
    missed: int = 0
    _running: list[UserCommand] = field(default_factory=list)

    def start(self, event: Event) -> None:
        self.reap()
        if not self.command:
            return
        if len(self._running) >= MOST_AT_ONCE:
            self.missed += 1
            return
        said = {
            "kind": event.kind, "at_s": event.at_s, "herd": event.herd, "job": event.job,
            "run": event.run, "reason": event.reason.as_json(),
        }  # fmt: skip
        env = {**os.environ, "RAMHERD_ALERT": json.dumps(said)}
        try:
            command = UserCommand(
                (SHELL, "-c", self.command), env, time.monotonic(), is_shown=True
            )  # fmt: skip
        except OSError:  # no memory to start it: the event itself is in the store
            self.missed += 1
            return
        self._running.append(command)

    @property
    def is_running(self) -> bool:
        self.reap()
        return bool(self._running)

    def reap(self) -> None:
        at_s = time.monotonic()
        self._running = [one for one in self._running if one.receive(at_s) is None]

    def close(self) -> None:
        for command in self._running:
            command.kill()
        self._running = []
