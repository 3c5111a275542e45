"""A terminal to drive a program through: typed into, read from, resized and closed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from dataclasses import dataclass

from integration.conftest import DEADLINE_S


@dataclass
class Terminal:
    """The end of a terminal that a window has; a program in its own session at the other."""

    process: "subprocess.Popen[bytes]"
    fd: int
    text: str = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def expect(self, wanted: str) -> str:
        """What came up to and with `wanted`; it is not found twice."""
        deadline = time.monotonic() + DEADLINE_S
        while wanted not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, f"no {wanted!r} in {self.text!r}"
            if select.select([self.fd], [], [], left)[0]:
                self.text += self._read()
        before, _, self.text = self.text.partition(wanted)
        return before + wanted

    def _read(self) -> str:
        """At the end Linux says EIO."""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            data = b""
        assert data, f"the terminal ended after {self.text!r}"
        return data.decode(errors="replace")

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


def open_terminal(command: list[str], env: dict[str, str], user: int | None = None) -> Terminal:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        user=user, group=user,
    )  # fmt: skip
    os.close(theirs)
    return Terminal(process, ours)
