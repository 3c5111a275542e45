"""When a wait is reported: its reason has changed, and has lasted a second."""

from ramherd.core.reasons import Why
from ramherd.decide.wait_reports import WaitReports, next_reports

ROOM, LEVEL = ("herd", Why.NO_ROOM_LEASE), ("herd", Why.LEVEL)


def reported(*seen: tuple[tuple[str, Why], float]) -> list[tuple[tuple[str, Why], float]]:
    """The waits that are reported."""
    reports, found = WaitReports(), []
    for cause, at_s in seen:
        reports, is_due = next_reports(reports, cause, at_s)
        if is_due:
            found.append((cause, at_s))
    return found


def test_a_wait_is_reported_when_it_has_lasted_a_second() -> None:
    """Once, however long it lasts."""
    assert reported((ROOM, 5.0), (ROOM, 5.9)) == []
    assert reported(*((ROOM, at / 2) for at in range(10, 40))) == [(ROOM, 6.0)]


def test_the_next_in_line_waits_for_the_same() -> None:
    """Jobs that start one after another make one report, not one each; another herd has its own."""
    other = ("other", Why.NO_ROOM_LEASE)

    assert reported((ROOM, 0.0), (ROOM, 1.0), (ROOM, 9.0), (ROOM, 9.5), (ROOM, 10.0)) == [
        (ROOM, 1.0)
    ]
    assert reported((ROOM, 0.0), (ROOM, 1.0), (other, 1.5), (other, 2.5)) == [
        (ROOM, 1.0), (other, 2.5),
    ]  # fmt: skip


def test_a_reason_that_is_over_soon_is_not_reported() -> None:
    """Two alternating reasons do not last."""
    assert reported(*((ROOM if at % 2 else LEVEL, at / 2) for at in range(20))) == []
    assert reported((ROOM, 0.0), (ROOM, 1.0), (LEVEL, 1.5), (ROOM, 2.0), (ROOM, 3.0)) == [
        (ROOM, 1.0)
    ]
    assert reported((ROOM, 0.0), (ROOM, 1.0), (LEVEL, 1.5), (LEVEL, 2.5), (ROOM, 3), (ROOM, 4)) == [
        (ROOM, 1.0), (LEVEL, 2.5), (ROOM, 4),
    ]  # fmt: skip


def test_a_wait_that_was_not_seen_meanwhile_begins_again() -> None:
    """Jobs started in between."""
    assert reported((ROOM, 0.0), (ROOM, 1.5), (ROOM, 2.4)) == []
    assert reported((ROOM, 0.0), (ROOM, 1.5), (ROOM, 2.5)) == [(ROOM, 2.5)]
