"""Why the first in line does not start: recorded when it changes, and now and then."""

from typing import Any

from ramherd.core.model import Reason, Wait, Why
from ramherd.supervisor.start_waits import StartWaits


class Recorded:
    """The part of an event log that is used here."""

    def __init__(self) -> None:
        self.herd, self.rows = "H", list[tuple[Any, ...]]()

    def record(self, _write: object, *values: Any) -> None:
        self.rows.append(values)


def test_other_numbers_are_recorded_less_often_than_other_reasons() -> None:
    """A second, and five: a herd that waits for hours writes little."""
    log = Recorded()
    waits = StartWaits(log)  # type: ignore[arg-type]

    def room(free: int) -> Wait:
        return Wait("J", Reason(Why.NO_ROOM_LEASE, need_bytes=9, lease_bytes=free, used_bytes=0))

    level = Wait("J", Reason(Why.LEVEL, level="tight"))
    waits.record(None, "", 0.0)
    assert log.rows == []
    waits.record(room(1), "a", 1.0)
    waits.record(room(2), "a", 3.0)
    assert log.rows == [("H", room(1).reason, "J", "a")]
    waits.record(room(2), "a", 6.0)
    waits.record(level, "a", 6.5)
    assert log.rows[1:] == [("H", room(2).reason, "J", "a")]
    waits.record(level, "a", 7.0)
    waits.record(None, "", 8.0)
    assert log.rows[2:] == [("H", level.reason, "J", "a"), ("H", None)]
