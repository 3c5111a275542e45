"""Records of process scans for later scans; `store/sightings.py` stores them."""

from typing import NamedTuple


class Sighting(NamedTuple):
    """Facts that earlier scans recorded about a process."""

    first_s: float
    at_s: float
    ppid: int
    cpu_ticks: int
    active_s: float
    bytes: int
    # When the process was first proved to be an orphan.
    orphan_s: float | None = None
    points: tuple[tuple[float, int], ...] = ()


class StrayCount(NamedTuple):
    """One scan: how many processes of a program ran, were strays, and were ended."""

    at_s: float
    software: str
    processes: int
    strays: int
    ended: int
