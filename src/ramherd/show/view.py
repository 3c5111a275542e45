"""The input of a display at each tick: values only, so that any display can be tested with them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ramherd.core.model import Event, Reason


@dataclass(frozen=True, slots=True)
class RunLine:
    name: str
    attempt: int
    used_bytes: int
    ran_s: float
    ending: bool
    grant_bytes: int = 0
    # The part that is in swap.
    swapped_bytes: int = 0
    # How long the run has been held for lack of memory; None while it runs.
    held_s: float | None = None
    # The turn of the agent, and the tool in use.
    doing: str = ""


@dataclass(frozen=True, slots=True)
class View:
    herd: str
    wall_s: float
    total: int
    done: int
    failed: int
    cancelled: int
    runs: tuple[RunLine, ...]
    used_bytes: int
    budget_bytes: int
    available_bytes: int
    waits_for: Reason | None
    level: str = "calm"
    # Jobs of a resumed herd that had ended before `wall_s` began.
    ended_before: int = 0

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.cancelled

    @property
    def queued(self) -> int:
        """A service reports counts and runs one after the other: a job may be in both."""
        return max(self.total - self.ended - len(self.runs), 0)

    @property
    def eta_s(self) -> float | None:
        """At the pace so far; unknown before the first job has ended."""
        ended = self.ended - self.ended_before
        if ended <= 0:
            return None
        return self.wall_s / ended * (self.total - self.ended)


class Display(NamedTuple):
    """The loop sends events here, each with the name of its run or job, and a function that makes
    the view: a display without room for a view does not call it.
    """

    event: Callable[[Event, str], None]
    update: Callable[[Callable[[], View]], None]
