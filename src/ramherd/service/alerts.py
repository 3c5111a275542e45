"""`on_alert`: a command of the user's for each warning, which nobody waits for."""

import json
import os
import subprocess
import time
from dataclasses import dataclass, field

from ramherd.core.model import Event
from ramherd.system.termination import kill_group

MOST_AT_ONCE = 4
MOST_S = 60.0


@dataclass
class AlertCommands:
    """The event stands in RAMHERD_ALERT, as JSON. What takes longer than a minute is ended."""

    command: str | None
    missed: int = 0
    _running: list[tuple["subprocess.Popen[bytes]", float]] = field(default_factory=list)

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
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.command], stdin=subprocess.DEVNULL,
                env={**os.environ, "RAMHERD_ALERT": json.dumps(said)}, start_new_session=True,
            )  # fmt: skip
        except OSError:  # no memory for it: the event itself is in the store
            self.missed += 1
            return
        self._running.append((process, time.monotonic()))

    def reap(self) -> None:
        for process, started_s in self._running:
            if process.poll() is None and time.monotonic() - started_s >= MOST_S:
                kill_group(process)
        self._running = [one for one in self._running if one[0].returncode is None]

    def close(self) -> None:
        for process, _started_s in self._running:
            kill_group(process)
        self._running = []
