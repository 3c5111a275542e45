"""The API as a child of the service: started, and started again when it dies."""

import json
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramherd.core.errors import UsageError
from ramherd.jobs.reader import Defaults

SERVE = str(Path(__file__).parent.parent / "api/__main__.py")
# One that dies at once is not started in a loop.
AGAIN_S = 1.0


class ApiProcess:
    def __init__(self, state: Path, runtime: Path, defaults: Defaults, port: int | None) -> None:
        self._given = {
            "state": str(state), "runtime": str(runtime), "port": port,
            "defaults": asdict(defaults),
        }  # fmt: skip
        self.socket = runtime / "api.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None
        self._started_s = float("-inf")
        # It has answered once: if it dies now, it is not for what it was asked to do.
        self.is_ready = False

    def start(self) -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        given: dict[str, Any] = {**self._given, "lifeline": theirs.fileno(), "path": sys.path}
        with theirs:
            # -I -S: as the keeper, 2 MB less.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", SERVE, json.dumps(given)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._lifeline, self._started_s = ours, time.monotonic()

    def fileno(self) -> int:
        return -1 if self._lifeline is None else self._lifeline.fileno()

    def receive(self) -> bool:
        """Whether there are new requests; a dead API is noticed here."""
        if self._lifeline is None:
            return False
        try:
            said = self._lifeline.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            said = b""
        self.is_ready = self.is_ready or b"r" in said
        if not said:
            self.close()
            if not self.is_ready:
                raise UsageError("the API does not start", hint="what is wrong stands above")
        return b"w" in said

    def restart_if_gone(self) -> bool:
        """Start it again if it is gone; whether it was."""
        if self._lifeline is not None or time.monotonic() - self._started_s < AGAIN_S:
            return False
        self.start()
        return True

    def close(self) -> None:
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None
        if self._process is not None:
            self._process.wait()
            self._process = None
            # The one who listened is gone; clients see at once that there is no service.
            self.socket.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid
