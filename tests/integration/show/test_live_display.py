"""On a real terminal: the progress display, and a window that closes."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from integration.conftest import Ramherd, await_, ours


def start_on_terminal(ramherd: Ramherd, *args: str) -> "tuple[subprocess.Popen[bytes], int]":
    """ramherd in a session of its own whose terminal is ours to read: 60 columns, 12 rows."""
    ours_end, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    command = [sys.executable, "-m", "ramherd", *args]
    process = subprocess.Popen(
        command, env=ramherd.env, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    return process, ours_end


def read_all(fd: int) -> str:
    """Until the other end is closed, which Linux tells as EIO."""
    data = b""
    try:
        while chunk := os.read(fd, 1 << 16):
            data += chunk
    except OSError:
        pass
    os.close(fd)
    return data.decode()


def test_progress_is_drawn_over(ramherd: Ramherd) -> None:
    """Done and total, the running with memory and time, and the summary at the end."""
    process, terminal = start_on_terminal(ramherd, "drill", "--agents", "4", "--budget", "1GiB")
    text = read_all(terminal)
    assert process.wait() == 0
    assert "/4  " in text
    assert "agent-02" in text
    assert "\x1b[J" in text
    drawn = [line for line in text.split("\r\n")[:-4] if not line.startswith("ramherd:")]
    assert all(len(line) <= 60 + 20 for line in drawn)
    assert "4 of 4 jobs done" in text


def test_a_closed_window_ends_everything(ramherd: Ramherd) -> None:
    """The terminal hangs up: SIGHUP, and nothing is left."""
    process, terminal = start_on_terminal(ramherd, "drill", "--agents", "4", "--grace", "1s")
    await_(lambda: ours("RAMHERD_RUN"), "runs")
    os.close(terminal)
    assert process.wait(20) == 130
