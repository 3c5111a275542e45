"""What scans of the processes record for later ones; `store/sightings.py` keeps it."""

from typing import NamedTuple


class Sighting(NamedTuple):
    """What earlier scans recorded of a process."""

    first_s: float
    at_s: float
    ppid: int
    cpu_ticks: int
    active_s: float
    bytes: int
    # When it was first proved to be an orphan.
    orphan_s: float | None = None
    points: tuple[tuple[float, int], ...] = ()


class StrayCount(NamedTuple):
    """One scan: how many processes of a software ran, how many were strays, how many were ended."""

    at_s: float
    software: str
    processes: int
    strays: int
    ended: int
