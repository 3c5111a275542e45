"""Bytes from a pipe to a file inside the kernel: no memory of ours is used. `os` alone."""

from __future__ import annotations

import os


def splice(pipe: int, file: int, most_bytes: int, offset: int | None = None) -> int:
    """How many were moved; 0 at the end of the pipe. BlockingIOError when it is empty, EINVAL on
    a file system that cannot.
    """
    return os.splice(pipe, file, most_bytes, offset_dst=offset)
