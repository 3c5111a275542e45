"""The service's looks at all agents of the machine: `ramherd watch`, each in a process of its own,
so that the service keeps neither its modules nor its memory. The loop does not wait for it.
"""

import os
import sys
import time
from dataclasses import dataclass, field

from ramherd.act.user_command import UserCommand
from ramherd.system.procfs import has_procfs

ARGV = (sys.executable, "-m", "ramherd", "watch", "--quiet")


@dataclass
class CensusWatch:
    """`every_s` 0 is never. The look itself sends alerts, by the `on_alert` of the service."""

    every_s: float
    on_alert: str | None
    _command: UserCommand | None = None
    # The first look is not part of the start.
    _started_s: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        at_s = time.monotonic()
        if self._command is not None:
            if self._command.receive(at_s) is None:
                return
            self._command = None
        if self.every_s and at_s - self._started_s >= self.every_s and has_procfs():
            self._started_s = at_s
            self._start(at_s)

    def _start(self, at_s: float) -> None:
        env = {**os.environ, "RAMHERD_ON_ALERT": self.on_alert or ""}
        if not self.on_alert:
            del env["RAMHERD_ON_ALERT"]
        try:
            self._command = UserCommand(ARGV, env, at_s)
        except OSError:  # no memory to start it: the next one may have some
            self._command = None

    def close(self) -> None:
        if self._command is not None:
            self._command.kill()
