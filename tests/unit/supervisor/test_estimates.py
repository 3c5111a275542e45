"""What runs of a class were seen to need, from one herd to the next."""

from contextlib import closing
from pathlib import Path

import pytest

from ramherd.act.run import LiveRun
from ramherd.core.memory import PRIOR
from ramherd.core.model import Job, PenReading
from ramherd.core.units import MIB
from ramherd.decide.governor.classes import RunSummary
from ramherd.store.classes import learn_run
from ramherd.store.sqlite import SqliteStore
from ramherd.supervisor.estimates import Classes, class_of, label_of, scaled, summary_of
from support.make import job


def ran(*looks: int, of: Job | None = None, peak: int = 0) -> LiveRun:
    """Began at 0, and was seen to hold this."""
    run = LiveRun("R", of or job("a"), 1, Path("/runs"), 0.0)
    run.label = label_of(class_of(run.job))
    for used in looks:
        run.usage.reading = PenReading(used)
        run.usage.add_moment(0)
    run.usage.reading = PenReading(peak_bytes=peak or max(looks, default=0))
    return run


def test_a_run_is_summed_up_without_keeping_its_looks() -> None:
    """Mean and spread over time, its peak, how long it took."""
    assert summary_of(ran(10, 10, 40, 40, peak=50), 8.04) == RunSummary(25, 15, 50, 8.0)
    assert summary_of(ran(7, 7, 7), 8.0) == RunSummary(7, 0, 7, 8.0)


def test_a_spread_is_never_imaginary() -> None:
    """Large numbers lose their last digits in a square."""
    summary = summary_of(ran(*[(1 << 53) + 1] * 3), 8.0)

    assert summary is not None
    assert summary.sd_bytes >= 0


def test_a_run_too_short_to_be_seen_says_nothing() -> None:
    """Nor one at which nobody looked; a tenth of the time is enough when it goes ten times as
    fast.
    """
    assert summary_of(ran(5), 0.9) is None
    assert summary_of(ran(), 9.0) is None
    assert Classes().learn(ran(5), 0.5) is None
    assert Classes(time_scale=10.0).learn(ran(5), 0.5) is not None


def test_what_is_learned_is_expected_of_the_next(tmp_path: Path) -> None:
    """At once in this herd, and in the next one from the store; of other classes nothing."""
    one, other = job("a", label="build"), job("b", label="test")
    label, unknown = label_of(class_of(one)), label_of(class_of(other))
    with closing(SqliteStore(tmp_path / "ramherd.db")) as store:
        classes = Classes()
        classes.read(store, [one, other])
        assert classes.estimates[label].base_bytes == PRIOR.base_bytes
        for _ in range(5):
            learned = classes.learn(ran(900 * MIB, of=one), 60.0)
            assert learned is not None
            learn_run(store, *learned)
        again = Classes()
        again.read(store, [one, other])

    assert classes.estimates[label].base_bytes > 1.5 * PRIOR.base_bytes
    assert again.estimates[label].base_bytes == pytest.approx(classes.estimates[label].base_bytes)
    assert again.estimates[unknown].base_bytes == PRIOR.base_bytes


def test_a_class_nobody_read_is_learned_all_the_same() -> None:
    """It begins with the prior."""
    classes = Classes()
    classes.learn(ran(900 * MIB), 60.0)

    assert classes.estimates[label_of(class_of(job("a")))].runs == 1


def test_classes_are_told_apart_by_directory_and_label() -> None:
    """However their names run together."""
    jobs = [job("a"), job("b", label="x"), job("c", label="/x")]

    assert len({label_of(class_of(one)) for one in jobs}) == 3
    assert class_of(job("a")) == class_of(job("z", seq=9, priority=3))


def test_small_agents_have_small_priors() -> None:
    """Sizes are scaled, times and shares are not."""
    small = scaled(PRIOR, 10.0)

    assert (small.base_bytes, small.sd_bytes) == (PRIOR.base_bytes // 10, PRIOR.sd_bytes // 10)
    assert (small.peak_bytes, small.duration_s) == (PRIOR.peak_bytes // 10, PRIOR.duration_s)
