"""Which process is meant. Apart from `core/model.py`, whose dataclasses take longer to make than a
hook may take in all.
"""

from typing import NamedTuple


class ProcId(NamedTuple):
    """A process for as long as the machine is up: a pid alone may be someone else by now."""

    pid: int
    start_ticks: int
