"""Which logs go: the oldest first, until the rest is young enough and fits."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import KeptLog
from ramherd.decide.pruning import PruneRule, choose_due
from support.reached import Reached


def test_the_oldest_go_until_the_rest_fits() -> None:
    """Exactly as many as have to."""
    logs = [KeptLog(str(n), float(n), 10) for n in range(5)]
    assert choose_due(logs, 50, PruneRule(30)) == logs[:2]
    assert choose_due(logs, 50, PruneRule(50)) == []
    assert choose_due(logs, 50, PruneRule(0)) == logs


def test_what_is_too_old_goes_whatever_it_holds() -> None:
    """Both rules together: age first, then room."""
    logs = [KeptLog(str(n), float(n), 10) for n in range(5)]
    assert choose_due(logs, 50, PruneRule(1000, before_s=3.0)) == logs[:3]
    assert choose_due(logs, 50, PruneRule(10, before_s=1.0)) == logs[:4]


@given(
    sizes=st.lists(st.integers(0, 100), max_size=20),
    keep=st.integers(0, 500),
    before=st.none() | st.integers(0, 20),
)
def test_never_more_than_asked_for(
    reached: Reached, sizes: list[int], keep: int, before: int | None
) -> None:
    """The rest fits and is young enough; without the last that went, one of both was not so."""
    logs = [KeptLog(str(n), float(n), size) for n, size in enumerate(sizes)]
    gone = choose_due(logs, sum(sizes), PruneRule(keep, before))
    rest = logs[len(gone) :]
    assert list(gone) == logs[: len(gone)]
    assert sum(log.bytes for log in rest) <= keep
    assert all(before is None or log.ended_s >= before for log in rest)
    reached(rest, "some that stay")
    if reached(gone, "some that go"):
        last = gone[-1]
        over = sum(log.bytes for log in rest) + last.bytes > keep
        assert over or (before is not None and last.ended_s < before)
