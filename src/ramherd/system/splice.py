"""Moves bytes from a pipe to a file inside the kernel, without memory of ours. Imports only os."""

from __future__ import annotations

import os


def splice(pipe: int, file: int, most_bytes: int, offset: int | None = None) -> int:
    """Returns how many bytes were moved; 0 at the end of the pipe. BlockingIOError if the pipe is
    empty, EINVAL if the file system does not support splice.
    """
    return os.splice(pipe, file, most_bytes, offset_dst=offset)
