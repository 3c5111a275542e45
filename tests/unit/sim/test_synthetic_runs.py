"""The built-in generator: repeatable, and shaped like the runs it was made after."""

import itertools
import statistics

import pytest

from ramherd.sim.profiles import Profile, split_bursts, synthetic, synthetic_at

MB = 10**6


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[int((len(values) - 1) * share)]


def burst_lengths(profile: Profile) -> list[int]:
    _, burst = split_bursts(profile)
    return [len(list(group)) for high, group in itertools.groupby(burst.bytes, bool) if high]


@pytest.fixture(scope="module", params=[1, 2, 77])
def herd(request: pytest.FixtureRequest) -> list[Profile]:
    return synthetic(request.param, 105)


def test_a_seed_gives_the_same_bytes_everywhere() -> None:
    """Pinned: a change here makes older benchmark results incomparable."""
    first, second = synthetic(1, 2)

    assert (first.duration_s, first.peak_bytes, sum(first.bytes)) == (613, 249956468, 137724883568)
    assert (second.duration_s, second.peak_bytes, sum(second.bytes)) == (
        190,
        354327022,
        40847944450,
    )


def test_a_profile_does_not_depend_on_how_many_are_made() -> None:
    """An agent makes its own profile by index, without those before it."""
    assert synthetic(3, 20)[:5] == synthetic(3, 5)
    assert synthetic_at(3, 4) == synthetic(3, 5)[4]


def test_seeds_differ() -> None:
    """Another seed is another herd."""
    assert synthetic(1, 1)[0].bytes != synthetic(2, 1)[0].bytes


@pytest.mark.parametrize(
    ("share", "mb", "tolerance"),
    [(0.1, 244, 0.05), (0.5, 296, 0.05), (0.9, 436, 0.05), (0.95, 682, 0.2)],
)
def test_peaks_have_the_measured_percentiles(
    herd: list[Profile], share: float, mb: float, tolerance: float
) -> None:
    """Within 5 %; at p95, where the curve turns up steeply, within 20 %."""
    found_mb = percentile([profile.peak_bytes / MB for profile in herd], share)

    assert found_mb == pytest.approx(mb, rel=tolerance)


@pytest.mark.parametrize(("share", "seconds"), [(0.1, 103), (0.5, 324), (0.9, 660)])
def test_durations_have_the_measured_percentiles(
    herd: list[Profile], share: float, seconds: float
) -> None:
    """Within 10 %."""
    found_s = percentile([profile.duration_s for profile in herd], share)

    assert found_s == pytest.approx(seconds, rel=0.1)


def test_the_rare_large_and_long_runs_are_there(herd: list[Profile]) -> None:
    """As many runs as were measured reach 80 % of the largest peak and 65 % of the longest run."""
    assert 0.8 * 2076 < max(profile.peak_bytes for profile in herd) / MB <= 2076
    assert 0.65 * 2544 < max(profile.duration_s for profile in herd) <= 2544


def test_mean_memory_is_the_measured_one(herd: list[Profile]) -> None:
    """219 MB over all runs, within 3 %."""
    found_mb = statistics.mean(profile.mean_bytes for profile in herd) / MB

    assert found_mb == pytest.approx(219, rel=0.03)


def test_each_run_starts_small_and_has_its_plateau_a_second_later(herd: list[Profile]) -> None:
    """The start ramp: 12 MB, then more than half of the median."""
    for profile in herd:
        assert profile.bytes[0] < 15 * MB
        assert profile.bytes[1] > 0.5 * statistics.median(profile.bytes)


def test_plateaus_are_near_200_mb_and_grow_slowly(herd: list[Profile]) -> None:
    """Medians of the last quarter against the second eighth: more, but not by half."""
    early = [percentile(list(p.bytes[len(p.bytes) // 8 : len(p.bytes) // 4]), 0.5) for p in herd]
    late = [percentile(list(p.bytes[-len(p.bytes) // 4 :]), 0.5) for p in herd]

    assert 180 * MB < statistics.median(late) < 240 * MB
    assert 1.0 < statistics.median(late) / statistics.median(early) < 1.5


def test_bursts_are_short_and_rare(herd: list[Profile]) -> None:
    """Half last one sample, three quarters up to 3 s, as measured; 1 to 2 in 100 s (1.5)."""
    lengths = [length for profile in herd for length in burst_lengths(profile)]
    seconds = sum(profile.duration_s for profile in herd)

    assert percentile([float(length) for length in lengths], 0.5) == 1
    assert percentile([float(length) for length in lengths], 0.75) <= 3
    assert 1 < 100 * len(lengths) / seconds < 2


def test_the_peak_is_short(herd: list[Profile]) -> None:
    """Nobody holds the peak longer than 3 s: packing by peaks wastes the rest."""
    for profile in herd:
        near_bytes = 0.98 * profile.peak_bytes
        assert 1 <= sum(size > near_bytes for size in profile.bytes) <= 3
