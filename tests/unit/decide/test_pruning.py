"""Which output is removed: the oldest first, until the rest fits."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import KeptLog
from ramherd.decide.pruning import choose_excess
from support.reached import Reached


def test_the_oldest_go_until_the_rest_fits() -> None:
    """Exactly as many logs as necessary."""
    logs = [KeptLog(str(n), float(n), 10) for n in range(5)]
    assert choose_excess(logs, 50, 30) == logs[:2]
    assert choose_excess(logs, 50, 50) == []
    assert choose_excess(logs, 50, 0) == logs


@given(sizes=st.lists(st.integers(0, 100), max_size=20), keep=st.integers(0, 500))
def test_never_more_than_asked_for(reached: Reached, sizes: list[int], keep: int) -> None:
    """The rest fits; with the last removed log, it did not."""
    logs = [KeptLog(str(n), float(n), size) for n, size in enumerate(sizes)]
    gone = choose_excess(logs, sum(sizes), keep)
    rest = logs[len(gone) :]
    assert list(gone) == logs[: len(gone)]
    assert sum(log.bytes for log in rest) <= keep
    reached(rest, "some that stay")
    if reached(gone, "some that go"):
        assert sum(log.bytes for log in rest) + gone[-1].bytes > keep
