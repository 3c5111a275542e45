"""Processes as named tuples. They are not in `core/model.py`, because its dataclasses take longer
to define than a hook may take in total. There is one tuple for each process of the machine, and
creating a dataclass instance takes four times as long.
"""

from typing import NamedTuple


class ProcId(NamedTuple):
    """A process, unique while the machine is up: a pid alone may be reused."""

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
    # The number of the controlling terminal; 0 if there is none.
    tty: int = 0
    # The effective user.
    uid: int = 0
    cpu_ticks: int = 0
    resident_bytes: int = 0
    is_kernel_thread: bool = False
    # CPU time of the children that it has waited for: a shell's or a build's commands.
    reaped_ticks: int = 0

    @property
    def pid(self) -> int:
        return self.id.pid

    @property
    def used_ticks(self) -> int:
        """CPU time of the process and of its ended children."""
        return self.cpu_ticks + self.reaped_ticks

    @property
    def is_alive(self) -> bool:
        """A zombie does not count: it only waits to be reaped."""
        return self.state not in "ZXx"
