"""Processes as named tuples. Apart from `core/model.py`, whose dataclasses take longer to make
than a hook may take in all; and there is one of these for each process of the machine, of which a
dataclass takes four times as long to make.
"""

from typing import NamedTuple


class ProcId(NamedTuple):
    """A process for as long as the machine is up: a pid alone may be someone else by now."""

    pid: int
    start_ticks: int


class Process(NamedTuple):
    """One line of the process table."""

    id: ProcId
    name: str
    # One letter: R, S, D, T, Z ...
    state: str
    ppid: int
    pgid: int
    sid: int
    # The number of its terminal; 0 is none.
    tty: int = 0
    # The user whose rights it has.
    uid: int = 0
    cpu_ticks: int = 0
    resident_bytes: int = 0
    is_kernel_thread: bool = False

    @property
    def pid(self) -> int:
        return self.id.pid

    @property
    def is_alive(self) -> bool:
        """A zombie only waits to be reaped."""
        return self.state not in "ZXx"
