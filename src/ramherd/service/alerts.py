"""`on_alert`: a command of the user's for each warning, which nobody waits for."""

import json
import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field

from ramherd.core.model import Event

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
                kill(process)
        self._running = [one for one in self._running if one[0].returncode is None]

    def close(self) -> None:
        for process, _started_s in self._running:
            kill(process)
        self._running = []


def kill(process: "subprocess.Popen[bytes]") -> None:
    """With what it started: it has a session of its own. We have not reaped it yet, so the number
    is still its own.
    """
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
