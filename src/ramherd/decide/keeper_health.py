"""Whether the keeper answers: when it is asked, when it counts as hanging and when as lost. Also
when a keeper that could not be started is tried again.
"""

from ramherd.core.model import Reason, Why
from ramherd.core.record import record, replace
from ramherd.decide.back_off import back_off_s
from ramherd.decide.start_pause import FIRST_TRY_S, LONGEST_TRY_S

# A keeper answers within milliseconds. After this silence it is asked for an answer; without one it
# counts as hanging a little later, and is replaced if it stays silent. A minute is longer than a
# disk that spins up, or a machine that swaps, delays it.
ASK_AFTER_S = 2.0
HANGS_AFTER_S = 4.0
LOST_AFTER_S = 60.0
# A longer pause between two steps was on our side: the supervisor was stopped, or the machine
# slept, usually together with the keeper.
LONGEST_STEP_S = 1.0


@record
class KeeperHealth:
    """How long the keeper has been silent, and whether it was asked for an answer."""

    at_s: float = 0.0
    silent_s: float = 0.0
    is_asked: bool = False

    @property
    def is_due(self) -> bool:
        """The keeper has to be asked now."""
        return not self.is_asked and self.silent_s >= ASK_AFTER_S

    @property
    def is_hanging(self) -> bool:
        return self.is_asked and self.silent_s >= HANGS_AFTER_S

    @property
    def is_lost(self) -> bool:
        return self.is_asked and self.silent_s >= LOST_AFTER_S


def next_health(health: KeeperHealth, at_s: float, *, is_heard: bool) -> KeeperHealth:
    """The health after one step, in which the keeper sent something or not."""
    if is_heard:
        return KeeperHealth(at_s)
    step_s = min(at_s - health.at_s, LONGEST_STEP_S)
    return replace(health, at_s=at_s, silent_s=health.silent_s + step_s)


def after_question(health: KeeperHealth) -> KeeperHealth:
    return replace(health, is_asked=True)


@record
class FailedKeeper:
    """The keeper could not be started, or ended before its first answer, this many times in a row.
    The next try is at `next_s`.
    """

    reason: Reason
    failures: int
    next_s: float


def after_failed_keeper(before: FailedKeeper | None, what: str, at_s: float) -> FailedKeeper:
    failures = before.failures + 1 if before is not None else 1
    delay_s = back_off_s(failures, FIRST_TRY_S, LONGEST_TRY_S)
    return FailedKeeper(Reason(Why.KEEPER_FAILS, what=what), failures, at_s + delay_s)


def find_pause(health: KeeperHealth, failed: FailedKeeper | None) -> Reason | None:
    """Why no job can start without a keeper; None if the keeper answers."""
    if health.is_hanging:
        return explain_hang()
    return failed.reason if failed is not None else None


def explain_hang() -> Reason:
    return Reason(Why.KEEPER_HANGS, silent_s=HANGS_AFTER_S, limit_s=LOST_AFTER_S)


def explain_replacement() -> Reason:
    return Reason(Why.KEEPER_REPLACED, silent_s=LOST_AFTER_S)
