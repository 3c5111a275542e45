"""Which runs are frozen at their grants."""

import pytest

from ramherd.core.memory import CacheFull, Hold, RunGrant
from ramherd.core.model import PenReading, Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.core.units import MIB
from ramherd.decide.hold import choose_hold, explain_hold

POLICY = GrantPolicy(near_bytes=2 * MIB)
GRANT = RunGrant(100 * MIB, 96 * MIB)
FULL = 94 * MIB


@pytest.mark.parametrize(
    ("used", "cache", "expected"),
    [
        (FULL - 1, 0, None),
        (FULL, 0, Hold(Reason(Why.AT_GRANT, used_bytes=FULL, grant_bytes=100 * MIB))),
        (MIB, FULL - MIB - 1, None),
        (MIB, FULL - MIB, CacheFull(Reason(Why.CACHE, used_bytes=MIB, cache_bytes=FULL - MIB))),
    ],
)
def test_a_run_is_held_by_its_own_memory_alone(
    used: int, cache: int, expected: Hold | CacheFull | None
) -> None:
    """Memory near the mark counts as at the mark; page cache is reported, and holds no run."""
    assert choose_hold(PenReading(used, cache_bytes=cache), GRANT, None, POLICY) == expected


def test_a_run_without_a_grant_is_not_held() -> None:
    """The run has no grant yet."""
    assert choose_hold(PenReading(FULL), RunGrant(), None, POLICY) is None


@pytest.mark.parametrize(("limit", "held"), [(96 * MIB, False), (96 * MIB + 1, True)])
def test_at_its_memory_limit_the_kernel_acts(limit: int, *, held: bool) -> None:
    """A run with a grant of its whole limit is neither held nor reported for its page cache."""
    full = choose_hold(PenReading(FULL), GRANT, limit, POLICY)
    cached = choose_hold(PenReading(0, cache_bytes=FULL), GRANT, limit, POLICY)

    assert (full is not None, cached is not None) == (held, held)


def test_a_long_hold_is_explained_with_what_is_free() -> None:
    """Nothing is free when more is granted than leased."""
    hold = Reason(Why.AT_GRANT, used_bytes=1, grant_bytes=2)

    assert explain_hold(hold, 10, 4).as_json() == {**hold.as_json(), "free_bytes": 6}
    assert explain_hold(hold, 4, 10).numbers["free_bytes"] == 0
