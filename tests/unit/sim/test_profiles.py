"""Profiles: reading, scaling, splitting."""

import pytest

from ramherd.core.errors import RamherdError
from ramherd.sim.profiles import Profile, flat, parse_traces, scaled, split_bursts

MB = 10**6
GOOD = '{"task": "a", "t_s": [0, 1.0, 2.1], "mb": [12.5, 190, 0], "cpu_pct": [1, 2, 3]}'


def plateau(*burst_mb: int) -> Profile:
    """A minute at 100 MB with a burst after 20 s."""
    mb = [100] * 20 + list(burst_mb) + [100] * (40 - len(burst_mb))
    return Profile("p", tuple(map(float, range(60))), tuple(value * MB for value in mb))


def test_a_trace_line_becomes_a_profile() -> None:
    """The name is the task; mb are 10^6 bytes; keys that are not needed do not matter."""
    (profile,) = parse_traces([GOOD])

    assert profile == Profile("a", (0.0, 1.0, 2.1), (12_500_000, 190_000_000, 0))


def test_empty_lines_are_no_profiles() -> None:
    """A file may end with a newline."""
    assert len(list(parse_traces([GOOD, "\n", GOOD + "\n", "  "]))) == 2


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"t_s": [0], "mb": [1]}', "`task`"),
        ('{"task": "a", "mb": [1]}', "`t_s`"),
        ('{"task": "a", "t_s": [], "mb": []}', "`t_s`"),
        ('{"task": "a", "t_s": [0], "mb": "12"}', "`mb`"),
        ('{"task": "a", "t_s": [0, 1], "mb": [1]}', "2 values in `t_s` and 1 in `mb`"),
        ('{"task": "a", "t_s": [0, 0], "mb": [1, 2]}', "do not grow"),
        ('{"task": "a", "t_s": [0], "mb": ["1"]}', "'1' in `mb`"),
        ('{"task": "a", "t_s": [0], "mb": [true]}', "'True' in `mb`"),
        ('{"task": "a", "t_s": [0], "mb": [-1]}', "'-1' in `mb`"),
        ('{"task": "a", "t_s": [0], "mb": [NaN]}', "'nan' in `mb`"),
        ('{"task": "a", "t_s": [0], "mb": [1e999]}', "'inf' in `mb`"),
        ('{"task": "a", "t_s": [0], "mb": [10000000000]}', "'10000000000' in `mb`"),
    ],
)
def test_a_bad_line_is_named(line: str, what: str) -> None:
    """The error says which line and what is wrong with it."""
    with pytest.raises(RamherdError) as caught:
        list(parse_traces([GOOD, line]))

    assert "trace line 2" in str(caught.value)
    assert what in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("character", ["[", "9"])
def test_a_hostile_line_is_a_bad_line(character: str) -> None:
    """Nesting and numbers deeper and longer than Python takes end in the same error."""
    with pytest.raises(RamherdError, match="trace line 1"):
        list(parse_traces(['{"task": "a", "t_s": [0], "mb": [' + character * 100_000]))


def test_a_sample_holds_until_the_next() -> None:
    """Steps, not lines; the first sample also holds before its time."""
    profile = Profile("p", (1.0, 2.0, 4.0), (10, 20, 0))

    assert [profile.bytes[profile.sample_at(t)] for t in (0, 1, 1.9, 2, 3.9, 4, 9)] == [
        10, 10, 10, 20, 20, 0, 0,
    ]  # fmt: skip


def test_the_mean_is_weighted_by_time_and_the_end_has_no_length() -> None:
    """1 s of 10 and 3 s of 20 are 17.5 on average, whatever the last sample says."""
    profile = Profile("p", (0.0, 1.0, 4.0), (10, 20, 999))

    assert profile.mean_bytes == 17.5
    assert profile.duration_s == 4
    assert Profile("p", (0.0,), (7,)).mean_bytes == 7


def test_scaling_keeps_the_shape() -> None:
    """Memory and time have each their own factor."""
    assert scaled(flat(100, 60), 0.25, 0.5) == Profile("flat", (0.0, 30.0), (25, 25))


def test_what_stands_above_the_running_median_is_a_burst() -> None:
    """The agent keeps its plateau; both parts together are the profile."""
    own, burst = split_bursts(plateau(300, 500))

    assert set(own.bytes) == {100 * MB}
    assert [size // MB for size in burst.bytes if size] == [200, 400]
    assert own.t_s == burst.t_s


def test_small_steps_and_slow_growth_are_no_bursts() -> None:
    """A tool call for each megabyte would be a fork each second."""
    growing = Profile(
        "p", tuple(map(float, range(600))), tuple(MB * (150 + i // 6) for i in range(600))
    )

    for profile in (plateau(108, 95), growing):
        own, burst = split_bursts(profile)
        assert own == profile
        assert not any(burst.bytes)
