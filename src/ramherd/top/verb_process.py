"""Another verb of ramherd, run as a child process: what it prints is shown on a page, and what it
does is exactly what it does when a user types it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

# A log that prints without end does not fill our memory: the rest is read in the next round.
READ_BYTES = 1 << 18
# A merge of a large repository takes minutes.
ENDS_WITHIN_S = 600.0
STOP_S = 1.0


class VerbResult(NamedTuple):
    code: int
    text: str

    @property
    def last_line(self) -> str:
        """For the line of messages: an error without the name of the program."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return lines[-1].strip().removeprefix("ramherd: ") if lines else ""


def make_command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "ramherd", *words]


def make_environment(columns: int) -> dict[str, str]:
    return {**os.environ, "COLUMNS": str(columns), "GIT_PAGER": "cat", "NO_COLOR": "1"}


def run_verb(words: Sequence[str], columns: int = 80) -> VerbResult:
    """Waits for its end."""
    try:
        done = subprocess.run(
            make_command(words), env=make_environment(columns), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=ENDS_WITHIN_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return VerbResult(1, f"ramherd {words[0]} has not ended within {ENDS_WITHIN_S:.0f} s")
    return VerbResult(done.returncode, done.stdout.decode(errors="replace"))


class VerbProcess:
    """A verb whose output is read while it runs."""

    def __init__(self, words: Sequence[str], columns: int) -> None:
        self._process = subprocess.Popen(
            make_command(words), env=make_environment(columns), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._fd = self._process.stdout.fileno()
        os.set_blocking(self._fd, False)
        self._rest = b""
        self._is_over = False

    def read_lines(self) -> list[str]:
        """Whole lines that are new; at the end, the rest too."""
        data = self._read()
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._is_over and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._is_over = True

    def _read(self) -> bytes:
        if self._is_over:
            return b""
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return b""
        self._is_over = not data
        return data
