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
# An API that dies at once is not restarted in a tight loop.
AGAIN_S = 1.0
# The API sends a byte each second. The imports of a start take seconds on a busy machine.
SILENT_S = 4.0
STARTS_WITHIN_S = 60.0
# When the service ends, requests in progress may take this long.
ENDS_WITHIN_S = 5.0
DIES_WITHIN_S = 0.5
NAME = "api.sock"
# Imported only by the API's process.
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
        # The API has answered once: if it dies now, its options are not the cause.
        self.is_ready = False
        # Clients can find the socket.
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
            # -I -S: 2 MB less, as for the keeper. -X utf8: as everywhere.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", SERVE, json.dumps(given)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._lifeline = ours
        self._started_s = self._received_s = self._checked_s = time.monotonic()

    def fileno(self) -> int:
        return -1 if self._lifeline is None else self._lifeline.fileno()

    def receive(self) -> bool:
        """Returns whether there are new requests; notices a dead API."""
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
        """Makes the API listen again if its socket was removed, or if the runtime directory has
        changed. Returns whether to report that; open connections go on.
        """
        if self.socket == runtime / NAME and (not self.is_ready or self.socket.exists()):
            return False
        self._given["runtime"], self.socket = str(runtime), runtime / NAME
        if self._lifeline is None or time.monotonic() - self._asked_s < AGAIN_S:
            return False
        is_news, self.is_listening = self.is_listening, False
        self._asked_s = time.monotonic()
        with suppress(OSError):  # the API is gone, and is started again in that directory
            self._lifeline.send(os.fsencode(runtime) + b"\n", socket.MSG_DONTWAIT)
        return is_news

    def stop_if_hung(self) -> bool:
        """Whether the API hung. Time in which the service itself did not run does not count."""
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
        """Starts the API again if it is gone; returns whether it was."""
        if self._lifeline is not None or time.monotonic() - self._started_s < AGAIN_S:
            return False
        self.start()
        return True

    def close(self, within_s: float = ENDS_WITHIN_S) -> None:
        """A process that survives even SIGKILL, because it waits for a disk, is left behind."""
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline, self.is_listening = None, False
        if self._process is not None:
            if not is_ended_within(self._process, within_s):
                self._process.kill()
                is_ended_within(self._process, DIES_WITHIN_S)
            self._process = None
            # The listening process is gone; clients see at once that there is no service.
            self.socket.unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid


def is_ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Uses a pidfd where available: `Popen.wait` with a timeout polls."""
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
