"""A command of the user that ramherd starts at an event: in a session of its own, in a pen if there
is one, and with a time limit. Only the caller waits for it.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ramherd.act.pens import Pen
from ramherd.system.procfs import read_process
from ramherd.system.termination import LOOP_REAP_S, kill_group

MOST_S = 60.0
# Joins the pen, then becomes the command.
JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'
# This much of the end of its output is kept, for the line that reports a failure.
KEPT_BYTES = 4096
SHOWN = 200


class UserCommand:
    """`stdin` is a file, or None for no input. The output of the command is read, and its last line
    is reported if it fails; with `is_shown` the output goes to our own output. OSError: the command
    could not be started.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], at_s: float, *, cwd: str | None = None,
        stdin: int | None = None, pen: Pen | None = None, is_shown: bool = False,
    ) -> None:  # fmt: skip
        self.pen, self.started_s = pen, at_s
        self._printed = b""
        self._is_killed = False
        join = pen.spawn_part()["join"] if pen is not None else []
        words = ["/bin/sh", "-c", JOIN, "sh", *join, "--", *argv] if join else list(argv)
        out = None if is_shown else subprocess.PIPE
        self._process = subprocess.Popen(
            words, env=env, cwd=cwd, start_new_session=True, stdout=out,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stderr=None if is_shown else subprocess.STDOUT,
        )  # fmt: skip
        self._output = self._process.stdout
        if self._output is not None:
            os.set_blocking(self._output.fileno(), False)
        if pen is not None and (process := read_process(self._process.pid)) is not None:
            pen.set_first(process.id)

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when the command has printed something, or has closed its output."""
        return () if self._output is None or self._output.closed else (self._output.fileno(),)

    def receive(self, at_s: float, most_s: float = MOST_S) -> str | None:
        """Why the command failed, "" if it did not, None while it runs. Ends it after `most_s`."""
        self._read()
        if self._process.poll() is None:
            if at_s - self.started_s < most_s:
                return None
            self.kill()
            return f"ended after {most_s:.0f} s"
        self._close()
        return self._explain(self._process.returncode)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while self.fds and (chunk := os.read(self.fds[0], 1 << 16)):
                self._printed = (self._printed + chunk)[-KEPT_BYTES:]
            self._close_output()

    def _explain(self, status: int) -> str:
        if status == 0:
            return ""
        what = f"exit status {status}" if status > 0 else f"signal {-status}"
        lines = self._printed.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{what}: {last[:SHOWN]}" if last else what

    def kill(self) -> None:
        """Kills all processes of the command; without a pen, those still in its process group."""
        kill_group(self._process, LOOP_REAP_S)
        self._close()

    def _close(self) -> None:
        """Also kills processes that the command left behind."""
        if self.pen is not None:
            self.pen.kill()
        self._close_output()

    def _close_output(self) -> None:
        if self._output is not None:
            self._output.close()


def open_input(folder: Path, name: str, data: bytes) -> int:
    """An unlinked file for standard input: it can have any size, and there is no pipe to fill."""
    path = folder / f".input-{name}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.unlink(path)
        left = memoryview(data)
        while left:
            left = left[os.write(fd, left) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd
