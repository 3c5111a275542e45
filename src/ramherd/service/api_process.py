"""The API as a child of the service: started, and started again when it dies or hangs."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ramherd.core.errors import UsageError
from ramherd.jobs.reader import Defaults
from ramherd.system.pidfd import open_pid, wait_ends

SERVE = str(Path(__file__).parent.parent / "api/__main__.py")
# One that dies at once is not started in a loop.
AGAIN_S = 1.0
# It sends a byte each second. Imports of a start take seconds on a busy machine.
SILENT_S = 4.0
STARTS_WITHIN_S = 60.0
# What it is answering when the service ends may take so long.
ENDS_WITHIN_S = 5.0
DIES_WITHIN_S = 0.5
NAME = "api.sock"
# Imported by its process alone.
LIBRARIES = ("starlette", "uvicorn")


class ApiProcess:
    def __init__(self, state: Path, runtime: Path, defaults: Defaults, port: int | None) -> None:
        self._given = {
            "state": str(state), "runtime": str(runtime), "port": port,
            "defaults": asdict(defaults),
        }  # fmt: skip
        self.socket = runtime / NAME
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None
        self._started_s = self._asked_s = self._received_s = self._checked_s = float("-inf")
        # It has answered once: if it dies now, it is not for what it was asked to do.
        self.is_ready = False
        # Clients find its socket.
        self.is_listening = False

    def start(self) -> None:
        if missing := [name for name in LIBRARIES if find_spec(name) is None]:
            raise UsageError(
                f"the API needs {' and '.join(missing)}, which {sys.executable} cannot import",
                hint=f"{sys.executable} -m pip install {' '.join(LIBRARIES)}",
            )
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        given: dict[str, Any] = {**self._given, "lifeline": theirs.fileno(), "path": sys.path}
        with theirs:
            # -I -S: as the keeper, 2 MB less. -X utf8: as everywhere.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", SERVE, json.dumps(given)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._lifeline = ours
        self._started_s = self._received_s = self._checked_s = time.monotonic()

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
        self._received_s = time.monotonic()
        self.is_ready = self.is_ready or b"r" in said
        self.is_listening = self.is_listening or b"r" in said
        if not said:
            self.close(DIES_WITHIN_S)
            if not self.is_ready:
                raise UsageError("the API did not start", hint="see the error above")
        return b"w" in said

    def restore(self, runtime: Path) -> bool:
        """Has the API listen again if its socket was removed, or if the runtime directory is
        another one now. Whether that is news; connections that it has go on.
        """
        if self.socket == runtime / NAME and (not self.is_ready or self.socket.exists()):
            return False
        self._given["runtime"], self.socket = str(runtime), runtime / NAME
        if self._lifeline is None or time.monotonic() - self._asked_s < AGAIN_S:
            return False
        is_news, self.is_listening = self.is_listening, False
        self._asked_s = time.monotonic()
        with suppress(OSError):  # it is gone, and is started again there
            self._lifeline.send(os.fsencode(runtime) + b"\n", socket.MSG_DONTWAIT)
        return is_news

    def stop_if_hung(self) -> bool:
        """Whether it hung. Time in which the service itself did not run is not its silence."""
        now_s = time.monotonic()
        stalled_s, self._checked_s = now_s - self._checked_s, now_s
        if stalled_s > SILENT_S / 2:
            self._received_s = now_s
        most_s = SILENT_S if self.is_listening else STARTS_WITHIN_S
        if self._process is None or now_s - self._received_s < most_s:
            return False
        self._process.kill()
        self.close(DIES_WITHIN_S)
        return True

    def restart_if_gone(self) -> bool:
        """Start it again if it is gone; whether it was."""
        if self._lifeline is not None or time.monotonic() - self._started_s < AGAIN_S:
            return False
        self.start()
        return True

    def close(self, within_s: float = ENDS_WITHIN_S) -> None:
        """A process that even a kill does not end, because it waits for a disk, is left behind."""
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline, self.is_listening = None, False
        if self._process is not None:
            if not is_ended_within(self._process, within_s):
                self._process.kill()
                is_ended_within(self._process, DIES_WITHIN_S)
            self._process = None
            # The one who listened is gone; clients see at once that there is no service.
            self.socket.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid


def is_ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """By a pidfd where there are any: `Popen.wait` with a limit of time looks again and again."""
    fd = open_pid(process.pid)
    if fd is not None:
        try:
            wait_ends([fd], seconds)
        finally:
            os.close(fd)
        return process.poll() is not None
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None
