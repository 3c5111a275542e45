"""A server process on stdio, in its pen: lines of JSON in, lines of JSON out, all of them bounded.

It ends at the end of its input; if not, it is ended by the ladder of `act/pens/ending.py`.
"""

import asyncio
import json
import os
import resource
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ramherd.act.pens import Pen
from ramherd.act.pens.cgroup import limit_pids
from ramherd.act.pens.ending import end_pens, kill_pens
from ramherd.act.pens.selection import Fleet
from ramherd.core.units import MIB
from ramherd.gateway.protocol.jsonrpc import Message
from ramherd.system.files import write_control
from ramherd.system.own_process import AGENT_OOM_SCORE_ADJ, end_with_parent, set_oom_score_adj
from ramherd.system.pidfd import open_pid
from ramherd.system.procfs import read_process

# A screenshot in base64 has 5 MB. The gateway has a reserve of 64 MiB.
MOST_LINE_BYTES = 16 * MIB
# Output between two messages that is no JSON: a banner is, a program of another kind is not.
MOST_GARBAGE_BYTES = MIB
# Written, and not read by the server.
MOST_UNREAD_BYTES = 32 * MIB
# After the end of its input; then TERM, and KILL after the grace.
EOF_S, GRACE_S = 2.0, 2.0
LAST_LINES = 20
STDERR_LINE_BYTES = 1000


class ServerLaunch(NamedTuple):
    """How a server is started. `env` is its whole environment."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    memory_limit_bytes: int
    pids_limit: int
    # The limit of open files that the gateway itself was started with.
    nofile: tuple[int, int]


class ServerProcess:
    """`on_message` gets each message, `on_end` one sentence when the process has ended."""

    def __init__(
        self,
        launch: ServerLaunch,
        on_message: Callable[[Message], None],
        on_end: Callable[[str], None],
    ) -> None:
        self.launch = launch
        self._on_message, self._on_end = on_message, on_end
        self.errors: deque[str] = deque(maxlen=LAST_LINES)
        self.pen: Pen | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._why = ""
        self._clearing: asyncio.Future[None] | None = None
        self.ended = asyncio.Event()
        # Whether it was reported for its memory.
        self.is_reported = False

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def start(self, fleet: Fleet, pen_name: str) -> None:
        """OSError if the program cannot be started."""
        self.pen = fleet.add(pen_name, self.launch.memory_limit_bytes)
        try:
            limit_pids(self.pen, self.launch.pids_limit)
            self._process = self._spawn(self.pen.spawn_part()["join"], pen_name)
        except BaseException:
            self.pen.remove(0.0)
            raise
        if (process := read_process(self.pid)) is not None:
            self.pen.set_first(process.id)
        await self._connect(self._process)

    def _spawn(self, join: list[str], tag: str) -> "subprocess.Popen[bytes]":
        parent = os.getpid()

        def prepare() -> None:
            for path in join:
                write_control(path, "0")
            set_oom_score_adj(AGENT_OOM_SCORE_ADJ)
            resource.setrlimit(resource.RLIMIT_NOFILE, self.launch.nofile)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            end_with_parent(parent)

        return subprocess.Popen(
            self.launch.argv, env={**self.launch.env, "RAMHERD_RUN": tag}, cwd=self.launch.cwd,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=prepare,  # noqa: PLW1509 - no thread holds a lock
        )  # fmt: skip

    async def _connect(self, process: "subprocess.Popen[bytes]") -> None:
        loop = asyncio.get_running_loop()
        self._stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, process.stdin)
        await loop.connect_read_pipe(
            lambda: LineReader(self._receive, self.abort, MOST_LINE_BYTES), process.stdout
        )
        await loop.connect_read_pipe(
            lambda: LineReader(self._receive_error, lambda _why: None, STDERR_LINE_BYTES),
            process.stderr,
        )
        pidfd = open_pid(process.pid)
        assert pidfd is not None, "it is our child, and not reaped"
        loop.add_reader(pidfd, self._reap, pidfd)

    def send(self, message: Message) -> None:
        if self._stdin is None or self._stdin.is_closing():
            return
        self._stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        if self._stdin.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.abort(f"it did not read {MOST_UNREAD_BYTES >> 20} MiB of requests")

    async def stop(self) -> None:
        """Returns when the process is gone, and its pen empty and removed."""
        if self._process is None:
            return
        if self._stdin is not None:
            self._stdin.close()
        try:
            await asyncio.wait_for(self.ended.wait(), EOF_S)
        except TimeoutError:
            pass
        if self.pen is not None:
            await asyncio.to_thread(end_pens, [self.pen], GRACE_S)
            await self.ended.wait()

    def kill(self) -> None:
        if self.pen is not None:
            self.pen.kill()

    def abort(self, why: str) -> None:
        self._why = self._why or why
        self.kill()

    def _receive(self, line: bytes, garbage: int) -> int:
        """Returns the bytes of garbage since the last message."""
        message = parse_message(line)
        if message is not None:
            self._on_message(message)
            return 0
        if garbage + len(line) > MOST_GARBAGE_BYTES:
            self.abort(f"it printed {MOST_GARBAGE_BYTES >> 20} MiB that is no JSON-RPC")
        return garbage + len(line)

    def _receive_error(self, line: bytes, _garbage: int) -> int:
        if line.strip():
            self.errors.append(line.decode(errors="replace").rstrip())
        return 0

    def _reap(self, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        assert self._process is not None
        status = self._process.wait()
        if self._stdin is not None:
            self._stdin.close()
        self._clearing = asyncio.ensure_future(self._clear(status))

    async def _clear(self, status: int) -> None:
        """Processes that the server left are ended with it."""
        pen = self.pen
        assert pen is not None
        killed_at_limit = pen.read().limit_hit and status == -signal.SIGKILL
        await asyncio.to_thread(lambda: kill_pens([pen]) and pen.remove())
        self.ended.set()
        self._on_end(self._explain(status, killed_at_limit))

    def _explain(self, status: int, killed_at_limit: bool) -> str:
        if self._why:
            return self._why
        if killed_at_limit:
            return f"it reached its memory limit of {self.launch.memory_limit_bytes >> 20} MiB"
        ended = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"it ended with {ended}" + (f": {self.errors[-1]}" if self.errors else "")


class LineReader(asyncio.Protocol):
    """Splits output into lines. A line beyond the limit is given up, once."""

    def __init__(
        self, on_line: Callable[[bytes, int], int], abort: Callable[[str], None], most_bytes: int
    ) -> None:
        self._on_line, self._abort, self._most_bytes = on_line, abort, most_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._garbage = 0
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if b"\n" in data:
            *lines, rest = b"".join((*self._parts, data)).split(b"\n")
            for line in lines:
                self._garbage = self._on_line(line[: self._most_bytes], self._garbage)
            self._parts, self._size, data = [], 0, rest
        self._parts.append(data)
        self._size += len(data)
        if self._size > self._most_bytes:
            self._parts, self._size = [], 0
            self._abort(f"it printed a line of more than {self._most_bytes >> 20} MiB")

    def eof_received(self) -> None:
        if self._size:
            self._on_line(b"".join(self._parts), self._garbage)


def parse_message(line: bytes) -> Message | None:
    """None for anything that is no JSON-RPC message."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not ("method" in found or "id" in found):
        return None
    return found if isinstance(found.get("method", ""), str) else None
