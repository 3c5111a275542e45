"""The question of `ramherd plan`: what is read, and which nonsense gets one line."""

import pytest

from ramherd.core.errors import UsageError
from ramherd.core.units import GIB, MIB, TIB
from ramherd.plan.request import (
    check_agent_size,
    check_number,
    make_host,
    parse_hosts,
    parse_leak,
)


def test_a_machine_keeps_a_reserve_for_its_system() -> None:
    """Two GiB, or an eighth of a large machine; the budget is 80 % less that."""
    small, large = make_host(16 * GIB, None, None), make_host(64 * GIB, None, None)

    assert small.reserve_bytes == 2 * GIB
    assert small.budget_bytes == int(0.8 * 16 * GIB) - 2 * GIB
    assert small.kill_bytes == 14 * GIB
    assert large.reserve_bytes == 8 * GIB


def test_hosts_may_differ() -> None:
    """A number and a size, a size alone, or several with commas."""
    hosts = parse_hosts("2x16GiB,64GiB", None, 8)

    assert [host.ram_bytes // GIB for host in hosts] == [16, 16, 64]
    assert hosts[0].cores == 8


def test_a_leak_is_a_size_in_a_time() -> None:
    """Bytes a second inside."""
    assert parse_leak(None) == 0
    assert parse_leak("3600MiB/h") == MIB
    assert parse_leak("60MiB/min") == MIB


@pytest.mark.parametrize("text", ["-1GiB/h", "5GiB", "GiB/h", "1GiB/moon", "1/h", "9999GiB/s"])
def test_a_leak_that_is_none_is_refused(text: str) -> None:
    """With an example that works."""
    with pytest.raises(UsageError) as refused:
        parse_leak(text)

    assert "\n" not in str(refused.value)
    assert "2GiB/h" in refused.value.hint


@pytest.mark.parametrize("ram_bytes", [10**6, 65 * TIB, 2 * GIB])
def test_a_host_without_room_is_refused(ram_bytes: int) -> None:
    """Too small, too large to be true, or full with its own system."""
    with pytest.raises(UsageError, match=r"a host of"):
        make_host(ram_bytes, None, None)


def test_a_small_host_has_room_if_its_system_is_small() -> None:
    """The hint for a host of 2 GiB names --reserve."""
    assert make_host(2 * GIB, 512 * MIB, None).budget_bytes > GIB


@pytest.mark.parametrize("text", ["0x16GiB", "4y16GiB", "4x", "", "9999x16GiB"])
def test_hosts_that_are_none_are_refused(text: str) -> None:
    """One line each."""
    with pytest.raises(UsageError, match="--hosts"):
        parse_hosts(text, None, None)


def test_an_agent_larger_than_the_budget_is_refused() -> None:
    """3 TB for one agent are a mistake, and so is a kilobyte."""
    host = make_host(16 * GIB, None, None)
    with pytest.raises(UsageError, match=r"2\.73 TiB does not fit"):
        check_agent_size(3 * 10**12, host)
    with pytest.raises(UsageError, match="below 16 MiB"):
        check_agent_size(MIB, host)
    check_agent_size(None, host)
    check_agent_size(300 * MIB, host)


def test_a_number_has_two_ends() -> None:
    """The error names the limit."""
    with pytest.raises(UsageError, match="--agents 0 is below 1"):
        check_number("agents", 0, 1, 100, 50)
    with pytest.raises(UsageError, match="--agents 101 is above 100"):
        check_number("agents", 101, 1, 100, 50)
    check_number("agents", None, 1, 100, 50)
