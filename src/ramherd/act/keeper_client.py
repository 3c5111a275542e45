"""The supervisor's side of the keeper: starts or adopts it; lines of JSON over a socket.

`flush` sends the collected requests. Requests that need a record are held back until the store has
it: a run is on disk before it starts, and can be withdrawn until then.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ramherd.core.errors import StoreError
from ramherd.core.model import ProcId
from ramherd.system.files import open_private
from ramherd.system.pidfd import open_pid, send_signal, wait_end, wait_ends
from ramherd.system.procfs import read_process
from ramherd.system.unix_socket import connect, listen

# A keeper answers in milliseconds; if it has just lost its supervisor, it first reads that
# supervisor's last requests.
ANSWER_S = 10.0
# The keeper has no run any more: if it has not ended by then, it does not answer.
CLOSE_S = 5.0
KEEP = str(Path(__file__).parent.parent / "keeper/__main__.py")
NOT_ADOPTABLE = ("-1", "0")
# The end of a failed keeper's output, which has its last line, shown up to this length.
ERROR_BYTES = 4096
ERROR_CHARS = 200
# The next supervisor would not find a run that starts without a record, and would lose the end of a
# run that the keeper forgets before it is recorded.
NEED_RECORD = ("spawn", "pass", "forget")


@dataclass(frozen=True, slots=True)
class Adoption:
    """Where the next supervisor finds the keeper: the first of these paths on which it can listen;
    and how long its runs continue without a supervisor.
    """

    paths: tuple[Path, ...]
    alone_s: float = 600.0


class OwnProcess:
    """A keeper that we started. It prints to the file `errors`, from byte `begin` on."""

    def __init__(self, process: "subprocess.Popen[bytes]", errors: Path, begin: int) -> None:
        self._process = process
        self._errors = errors
        self._begin = begin

    def read_failure(self) -> str:
        """Why the keeper has ended: the last line that it printed, or its exit status."""
        return read_last_line(self._errors, self._begin) or describe_end(self._process.wait())

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.wait()

    def is_over_in(self, most_s: float) -> bool:
        try:
            self._process.wait(most_s)
        except subprocess.TimeoutExpired:
            return False
        return True


class AdoptedProcess:
    """A keeper that an earlier supervisor started: not our child."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    def kill(self) -> None:
        send_signal(self._pidfd, signal.SIGKILL)

    def wait(self) -> None:
        wait_end(self._pidfd)
        self.close()

    def is_over_in(self, most_s: float) -> bool:
        if wait_ends([self._pidfd], most_s):
            return False
        self.close()
        return True

    def close(self) -> None:
        os.close(self._pidfd)


class KeeperClient:
    """The connection to a running keeper, made by `start_keeper` or `adopt_keeper`. `known` has the
    runs of the keeper when it was adopted.
    """

    def __init__(
        self, channel: socket.socket, process: "OwnProcess | AdoptedProcess",
        proc_id: ProcId, *, is_adoptable: bool, known: tuple[str, ...] = (), early: bytes = b"",
        takes_files: bool = True, has_answered: bool = True,
    ) -> None:  # fmt: skip
        self._socket = channel
        self._process = process
        # `early` arrived together with the greeting.
        self._inbox = b""
        self._early = early
        self._outbox = b""
        # Held back until the next commit.
        self._unrecorded: list[dict[str, Any]] = []
        self.proc_id = proc_id
        self.known = known
        self.is_adoptable = is_adoptable
        # A keeper of an earlier ramherd accepts variables and arguments as text only.
        self.takes_files = takes_files
        # A new keeper that ends before its first answer could not start. It has no run.
        self.has_answered = has_answered

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, do: str, **values: Any) -> None:
        """Only queues the request: `flush` sends it. If requests about the same run are held back,
        it is sent after them.
        """
        request = {"do": do, **values}
        if do in NEED_RECORD or self._is_held_back(values.get("run")):
            self._unrecorded.append(request)
        else:
            self._outbox += encode(request)

    def _is_held_back(self, run: str | None) -> bool:
        return run is not None and any(
            run in (held["run"], held.get("to")) for held in self._unrecorded
        )

    def release(self) -> None:
        """The store has everything that was recorded so far: `flush` may send all requests."""
        self._outbox += b"".join(map(encode, self._unrecorded))
        self._unrecorded.clear()

    def withdraw(self, run: str) -> bool:
        """Returns whether the start of this run was held back; if so, it is never sent."""
        kept = [held for held in self._unrecorded if run not in (held["run"], held.get("to"))]
        is_found = any(is_start_of(run, held) for held in self._unrecorded)
        if is_found:
            self._unrecorded = kept
        return is_found

    @property
    def has_more_to_send(self) -> bool:
        return bool(self._outbox)

    def flush(self) -> None:
        """Sends as much as the socket accepts: if each end waited for the other to read, both would
        wait for ever. `receive` notices that a keeper is gone, after its last messages.
        """
        try:
            while self._outbox:
                sent = self._socket.send(self._outbox, socket.MSG_DONTWAIT)
                self._outbox = self._outbox[sent:]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._outbox = b""

    def receive(self) -> list[dict[str, Any]] | None:
        """The keeper's messages since the last call; None when the keeper is gone."""
        data, self._early = self._early, b""
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
        self.has_answered |= bool(lines)
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """No run is left: the keeper ends when its socket is closed, or by request."""
        if self.is_adoptable:
            self.send("end")
            self.release()
            self._socket.settimeout(CLOSE_S)
            try:
                self._socket.sendall(self._outbox)
            except OSError:
                pass
        self._socket.close()
        if not self._process.is_over_in(CLOSE_S):
            self._process.kill()
            self._process.wait()

    def leave(self) -> None:
        """The keeper and its runs continue without us."""
        self._socket.close()
        if isinstance(self._process, AdoptedProcess):
            self._process.close()

    def kill(self) -> None:
        """Kills the keeper: one that closed its socket is not trusted with runs any more."""
        self._process.kill()
        self._socket.close()
        self._process.wait()

    def read_failure(self) -> str:
        """Why the keeper ended without an answer. Called after `kill`."""
        return self._process.read_failure() if isinstance(self._process, OwnProcess) else ""


class NoKeeper:
    """Replaces a keeper that could not be started, until the next try. Requests are dropped: there
    is no run.
    """

    proc_id = ProcId(0, 0)
    known: tuple[str, ...] = ()
    is_adoptable = False
    takes_files = True
    has_answered = False
    has_more_to_send = False

    def fileno(self) -> int:
        return -1

    def send(self, do: str, **values: Any) -> None: ...

    def release(self) -> None: ...

    def withdraw(self, run: str) -> bool:  # noqa: ARG002
        return False

    def flush(self) -> None: ...

    def receive(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None: ...

    def leave(self) -> None: ...

    def kill(self) -> None: ...

    def read_failure(self) -> str:
        return ""


def start_keeper(
    grace_s: float, errors: Path, nofile: int, adoption: Adoption | None = None
) -> KeeperClient:
    """Starts a keeper of our own. OSError: it could not be started."""
    ours, theirs = socket.socketpair()
    with ExitStack() as opened, ExitStack() as undo:
        undo.callback(ours.close)
        passed, ends = [opened.enter_context(theirs).fileno()], NOT_ADOPTABLE
        if adoption is not None:
            listener = opened.enter_context(listen_on_first(adoption.paths))
            passed.append(listener.fileno())
            ends = (str(listener.fileno()), str(adoption.alone_s))
        begin, log = size_of(errors), opened.enter_context(open_errors(errors))
        # -I -S: no site, no user paths; 2 MB less, and no code from the user's environment runs.
        # -X utf8: names of files are the same bytes in every locale.
        numbers = (str(theirs.fileno()), str(grace_s), str(nofile), *ends)
        command = [sys.executable, "-I", "-S", "-X", "utf8", KEEP, *numbers]
        process = OwnProcess(
            subprocess.Popen(
                command, pass_fds=passed, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            ),
            errors, begin,
        )  # fmt: skip
        undo.pop_all()
    return KeeperClient(
        ours, process, proc_id_of(process.pid), is_adoptable=adoption is not None,
        has_answered=False,
    )  # fmt: skip


def listen_on_first(paths: tuple[Path, ...]) -> socket.socket:
    """Some file systems do not support sockets, and a full one has no space for one."""
    *earlier, last = paths
    for path in earlier:
        try:
            return listen(path)
        except OSError:
            continue
    return listen(last)


def adopt_keeper(path: Path, wait_s: float = ANSWER_S) -> KeeperClient | None:
    """The keeper that listens on `path`; None if there is none any more. If the keeper still has a
    supervisor, this tries again for a while: the keeper may not have noticed yet that it died.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            channel = connect(path, ANSWER_S)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        greeting, rest = read_line(channel)
        if greeting is None or greeting["did"] == "here":
            break
        channel.close()
        if time.monotonic() >= deadline:
            raise StoreError(f"the keeper at {path} has a supervisor already")
        time.sleep(0.02)
    if greeting is None:
        channel.close()
        return None
    pid = greeting["pid"]
    proc_id = proc_id_of(pid)
    # The keeper is connected, so it is alive, and the pid is still its own.
    pidfd = open_pid(pid)
    if pidfd is None:  # it ended with its last run, just now
        channel.close()
        return None
    channel.settimeout(None)
    known = tuple(greeting["runs"])
    return KeeperClient(
        channel, AdoptedProcess(pidfd), proc_id, is_adoptable=True, known=known, early=rest,
        takes_files=greeting.get("files", False),
    )  # fmt: skip


def encode(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode() + b"\n"


def is_start_of(run: str, request: dict[str, Any]) -> bool:
    started = {"spawn": "run", "pass": "to"}.get(request["do"])
    return started is not None and bool(request[started] == run)


def proc_id_of(pid: int) -> ProcId:
    proc = read_process(pid)
    return proc.id if proc is not None else ProcId(pid, 0)


def read_line(channel: socket.socket) -> tuple[dict[str, Any] | None, bytes]:
    """The first line, and the data after it; None if the other end closed the connection."""
    data = b""
    try:
        while b"\n" not in data:
            if not (chunk := channel.recv(1 << 16)):
                return None, b""
            data += chunk
    except OSError:
        return None, b""
    line, rest = data.split(b"\n", 1)
    return json.loads(line), rest


def open_errors(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab", opener=open_private)
    except OSError:  # full disk: the herd runs without a log of the keeper's errors
        return open(os.devnull, "ab")


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_last_line(path: Path, begin: int) -> str:
    """The last line of the file, if it was written after the first `begin` bytes; else ""."""
    try:
        with open(path, "rb", opener=open_private) as file:
            file.seek(max(begin, file.seek(0, os.SEEK_END) - ERROR_BYTES))
            lines = file.read(ERROR_BYTES).decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:ERROR_CHARS] for line in reversed(lines) if line.strip()), "")


def describe_end(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"ended by signal {-status}"
