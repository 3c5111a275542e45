"""The supervisor's end of the keeper: starting it, and lines of JSON over one socket.

Requests are collected and sent by `flush`, after the store has them: what runs is on disk first.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from ramherd.act import keeper
from ramherd.measure.procfs import read_proc
from ramherd.model import ProcId


class KeeperLink:
    def __init__(self, grace_s: float, errors: Path, nofile: int) -> None:
        self._inbox = b""
        self._outbox = b""
        ours, theirs = socket.socketpair()
        # -I -S: no site, no user paths; 2 MB less, and nothing of the user's environment runs.
        numbers = (theirs.fileno(), grace_s, nofile)
        command = [sys.executable, "-I", "-S", keeper.__file__, *map(str, numbers)]
        with theirs, open_errors(errors) as log:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self._socket = ours

    @property
    def proc_id(self) -> ProcId:
        proc = read_proc(self._process.pid)
        return proc.id if proc is not None else ProcId(self._process.pid, 0)

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self, do: str, **values: Any) -> None:
        self._outbox += json.dumps({"do": do, **values}).encode() + b"\n"

    @property
    def has_more_to_send(self) -> bool:
        return bool(self._outbox)

    def flush(self) -> None:
        """As much as the socket takes: if both ends waited for the other to read, both would
        wait for ever. A keeper that is gone is noticed by `hear`, with what it still said.
        """
        try:
            while self._outbox:
                sent = self._socket.send(self._outbox, socket.MSG_DONTWAIT)
                self._outbox = self._outbox[sent:]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._outbox = b""

    def hear(self) -> list[dict[str, Any]] | None:
        """What the keeper said since; None when it is gone."""
        data = b""
        try:
            while chunk := self._socket.recv(1 << 16, socket.MSG_DONTWAIT):
                data += chunk
            if not data:
                return None
        except BlockingIOError:
            pass
        except ConnectionResetError:
            if not data:
                return None
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """No run is left: the keeper ends when its socket does."""
        self._socket.close()
        self._process.wait()

    def kill(self) -> None:
        """A keeper that stopped speaking cannot be trusted with runs."""
        self._process.kill()
        self.close()


def open_errors(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab", opener=private)
    except OSError:  # a full disk: the keeper's last words are not worth a herd
        return open(os.devnull, "ab")


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
