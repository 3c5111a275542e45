"""A descriptor that becomes readable when it is set: a thread, or the kernel at a memory mark,
wakes a loop with it.
"""

import os


def open_event() -> int:
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def set_event(fd: int) -> None:
    os.eventfd_write(fd, 1)


def clear_event(fd: int) -> bool:
    """Whether it was set."""
    try:
        os.eventfd_read(fd)
    except BlockingIOError:
        return False
    return True
