"""Timers as text: units, a launchd job and cron lines that are right."""

import plistlib

import pytest

from ramherd.core.errors import UsageError
from ramherd.strays.timer import (
    REAP,
    add_block,
    cron_times,
    make_cron_lines,
    make_plist,
    make_units,
    remove_block,
)

ARGV = ["/opt/my py/python", "-m", "ramherd", "reap", "--yes"]
ENV = {"XDG_STATE_HOME": '/a "b" 100%'}


def test_units_quote_what_systemd_would_expand() -> None:
    """Spaces, quotes, percent signs."""
    service, timer = make_units(REAP, ARGV, ENV, 900.0).values()

    assert 'ExecStart="/opt/my py/python" "-m" "ramherd" "reap" "--yes"\n' in service
    assert 'Environment="XDG_STATE_HOME=/a \\"b\\" 100%%"\n' in service
    assert "OnUnitActiveSec=900s" in timer


def test_a_launchd_job_is_a_property_list() -> None:
    """With seconds between two starts."""
    job = plistlib.loads(make_plist(REAP, ARGV, ENV, 900.0).encode())

    assert (job["StartInterval"], job["ProgramArguments"]) == (900, ARGV)
    assert job["EnvironmentVariables"] == ENV


@pytest.mark.parametrize(
    ("minutes", "times"),
    [
        (1, ["* * * * *"]),
        (15, ["*/15 * * * *"]),
        (60, ["0 * * * *"]),
        (120, ["0 0,2,4,6,8,10,12,14,16,18,20,22 * * *"]),
        (90, ["0 0,3,6,9,12,15,18,21 * * *", "30 1,4,7,10,13,16,19,22 * * *"]),
        (1440, ["0 0 * * *"]),
    ],
)
def test_cron_times(minutes: int, times: list[str]) -> None:
    """`*/90` would fire every hour."""
    assert cron_times(minutes * 60.0) == times


@pytest.mark.parametrize("minutes", [m for m in range(1, 1441) if 1440 % m == 0])
def test_cron_fires_as_often_as_asked(minutes: int) -> None:
    """For every number of minutes that divides a day."""
    fired = set()
    for line in cron_times(minutes * 60.0):
        minute, hour, *_rest = line.split()
        step = int(minute.partition("/")[2] or 1) if "*" in minute else 0
        every = range(0, 60, step) if step else [int(minute)]
        hours = range(24) if hour == "*" else map(int, hour.split(","))
        fired |= {h * 60 + m for h in hours for m in every}

    assert fired == set(range(0, 1440, minutes))


def test_what_cron_cannot_do_is_said() -> None:
    """With the nearest that it can."""
    with pytest.raises(UsageError, match="does not divide a day") as error:
        cron_times(50 * 60.0)

    assert error.value.hint == "--every 48m"


def test_a_block_is_added_and_removed_exactly() -> None:
    """Whatever stands before and after it."""
    block = make_cron_lines(REAP, ARGV, ENV, 900.0)
    for old in ("", "0 1 * * * backup\n", "MAILTO=x\n"):
        new = add_block(old, block, REAP)
        assert "100\\%" in new
        assert remove_block(new, REAP) == old
        assert add_block(new, block, REAP) == new
    assert remove_block(add_block("0 1 * * * x\n", block, REAP) + "1 1 * * * y\n", REAP) == (
        "0 1 * * * x\n1 1 * * * y\n"
    )
