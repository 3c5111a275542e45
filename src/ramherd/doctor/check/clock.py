"""The clock: stored times, retries across restarts and API certificates depend on it."""

from collections.abc import Iterator

from ramherd.doctor.facts import Clock
from ramherd.doctor.findings import Finding, Severity

# No ramherd is older than this (2026-01-01): an earlier clock was never set.
EARLIEST_S = 1_767_225_600
BACK_S = 60.0
# Reading these takes a microsecond or more, and a supervisor reads the clock all the time.
SLOW_SOURCES = {"hpet", "acpi_pm", "jiffies", "pit"}


def check_clock(clock: Clock) -> Iterator[Finding]:
    yield check_time(clock)
    if clock.source in SLOW_SOURCES:
        yield Finding(
            "clock-source", Severity.HINT, f"the kernel's clock is {clock.source}",
            "reading the time is slow in every program",
            "cat /sys/devices/system/clocksource/clocksource0/available_clocksource",
        )  # fmt: skip
    else:
        yield Finding("clock-source", Severity.OK, f"clock source {clock.source or 'not told'}")


def check_time(clock: Clock) -> Finding:
    command = "sudo timedatectl set-ntp true   # without systemd: ntpd or chronyd"
    if clock.now_s < EARLIEST_S:
        why = "certificates of every API are not valid yet: no agent can connect"
        return Finding("clock", Severity.PROBLEM, "the clock was never set", why, command)
    if clock.newest_s is not None and clock.newest_s > clock.now_s + BACK_S:
        back = clock.newest_s - clock.now_s
        return Finding(
            "clock", Severity.WARNING, f"the store was written {back:.0f} s in the future",
            "the clock was set back: ages in `logs` and `prune` are wrong until then", command,
            numbers={"back_s": round(back)},
        )  # fmt: skip
    if clock.is_synchronised is False:
        why = "a clock that is minutes off makes API calls fail, and logs hard to compare"
        return Finding("clock", Severity.HINT, "no service keeps the clock right", why, command)
    return Finding("clock", Severity.OK, "the clock is set")
