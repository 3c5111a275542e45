"""Unix sockets by a path of any length: the kernel accepts 107 bytes, our directories may be
longer, so the path goes through a descriptor of the directory.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def listen(path: Path) -> socket.socket:
    """Accessible to this user only. The caller holds the owner's lock: an old socket is removed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with shortened(path) as short:
            made.bind(short)
        path.chmod(0o600)
        made.listen(128)
    except BaseException:
        made.close()
        raise
    return made


def connect(path: Path, timeout_s: float | None = None) -> socket.socket:
    """ConnectionRefusedError or FileNotFoundError if no process listens."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        with shortened(path) as short:
            connect_within(made, short, timeout_s)
    except BaseException:
        made.close()
        raise
    return made


def is_listening(path: Path) -> bool:
    try:
        connect(path, 1.0).close()
    except OSError:
        return False
    return True


def connect_within(made: socket.socket, path: str, timeout_s: float | None) -> None:
    """With a timeout, the kernel refuses at once while its queue is full: this tries again."""
    deadline = time.monotonic() + (timeout_s or 0.0)
    while True:
        try:
            made.connect(path)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def shortened(path: Path) -> Iterator[str]:
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)
