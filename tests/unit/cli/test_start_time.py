"""`--at` and `--in`: times to come, and clear errors for others."""

import argparse
import time

import pytest

from ramherd.cli.start_time import read_start_at
from ramherd.core.errors import UsageError


def local(*parts: int) -> float:
    return time.mktime((*parts, 0, 0, -1))  # type: ignore[arg-type]


NOW = local(2026, 11, 16, 20, 30, 0)


def start_at(at: str | None = None, in_: str | None = None) -> float | None:
    return read_start_at(argparse.Namespace(at=at, in_=in_), NOW)


def test_times_to_come() -> None:
    """A time of day that has passed is tomorrow's."""
    assert start_at() is None
    assert start_at("22:00") == local(2026, 11, 16, 22, 0, 0)
    assert start_at("8:15:30") == local(2026, 11, 17, 8, 15, 30)
    assert start_at("20:30") == local(2026, 11, 17, 20, 30, 0)
    assert start_at("2026-12-31T22:00") == local(2026, 12, 31, 22, 0, 0)
    assert start_at("2026-12-31 22:00") == local(2026, 12, 31, 22, 0, 0)
    assert start_at(in_="2h") == NOW + 7200


@pytest.mark.parametrize(
    ("at", "in_", "message"),
    [
        ("22:00", "2h", "both --at and --in were given"),
        ("ten", None, "--at 'ten' is not a time"),
        ("24:00", None, "--at '24:00' is not a time of day"),
        ("22:61", None, "--at '22:61' is not a time of day"),
        ("2026-02-30T10:00", None, "--at '2026-02-30T10:00' is not a date"),
        ("2026-11-16T20:00", None, "--at '2026-11-16T20:00' was 30m00s ago"),
        ("2036-11-16T20:00", None, "--at '2036-11-16T20:00' is more than a year ahead"),
        (None, "soon", "--in: 'soon' is not a duration"),
        (None, "0", "--in: duration '0' is not above zero"),
        (None, "400d", "--in '400d' is more than a year ahead"),
    ],
)
def test_mistakes(at: str | None, in_: str | None, message: str) -> None:
    """What is wrong, and how it is written."""
    with pytest.raises(UsageError) as refused:
        start_at(at, in_)
    assert str(refused.value) == message
