"""The guard of a process: cleans up after it was killed.

A fork of the process, not a new program: it starts in 1 ms instead of 20 ms, and shares nearly all
of its memory. It sleeps until a pipe closes whose other end only that process holds.
"""

import os
import signal
from collections.abc import Callable
from typing import NoReturn

from ramherd.system.files import open_private
from ramherd.system.own_process import close_descriptors_from


class Guard:
    """`errors` is the file for what `clean_up` prints."""

    def __init__(self, clean_up: Callable[[], None], errors: str) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            watch(read, clean_up, errors)
        os.close(read)
        self._pipe = write

    def dismiss(self) -> None:
        """Ends the guard: nothing is left to clear."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._pipe)


def watch(pipe: int, clean_up: Callable[[], None], errors: str) -> NoReturn:
    """cli/main.py prints an error of this function, into the file for our errors."""
    os.setsid()
    leave_files(pipe, errors)
    os.read(3, 1)
    clean_up()
    os._exit(0)


def leave_files(pipe: int, errors: str) -> None:
    """Closes all files: no process may wait for our terminal, pipe or lock. The pipe becomes 3."""
    os.dup2(pipe, 3)
    null = os.open(os.devnull, os.O_RDWR)
    log = open_private(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for fd, target in ((null, 0), (null, 1), (log, 2)):
        os.dup2(fd, target)
    close_descriptors_from(4)
    os.chdir("/")
