"""Estimates from past runs."""

from contextlib import closing
from pathlib import Path

import pytest

from ramherd.cli.main import call
from ramherd.core.memory import MB, PRIOR, Estimate
from ramherd.decide.governor.classes import (
    KEEP_RUNS,
    ClassRecord,
    RunSummary,
    estimate,
    learn,
    mixed,
    prior_of,
    quantile,
)
from ramherd.store.classes import ClassKey, learn_run, read_class
from ramherd.store.sqlite import SqliteStore

USUAL = RunSummary(400 * MB, 40 * MB, 600 * MB, 300.0)


def after(*summaries: RunSummary) -> ClassRecord:
    record = ClassRecord()
    for summary in summaries:
        record = learn(record, summary)
    return record


def test_a_class_nobody_has_seen_is_the_prior() -> None:
    """Cold start."""
    assert estimate(ClassRecord()) == PRIOR


def test_a_few_runs_move_the_prior_and_many_replace_it() -> None:
    """One run has a fifth of the prior's weight."""
    assert 215 * MB < estimate(after(USUAL)).base_bytes < 260 * MB
    assert estimate(after(*[USUAL] * 60)).base_bytes == pytest.approx(400 * MB, rel=0.05)


def test_what_a_job_was_said_to_need_stands_in_for_the_prior() -> None:
    """Half of `memory` is the spread; both count less the more runs were seen. A `memory` that is
    not below the base changes nothing.
    """
    fresh = PRIOR.promised(40 * MB)
    once, often = (estimate(after(*[USUAL] * runs)) for runs in (1, 60))

    assert (fresh.base_bytes, fresh.sd_bytes) == (40 * MB, 20 * MB)
    assert PRIOR.promised(200 * MB).sd_bytes == 100 * MB
    assert 40 * MB < once.promised(40 * MB).base_bytes < 100 * MB
    assert often.promised(40 * MB).base_bytes == pytest.approx(often.base_bytes, rel=0.1)
    for said in (0, PRIOR.base_bytes, 900 * MB):
        assert PRIOR.promised(said) is PRIOR


def test_an_outlier_hardly_counts() -> None:
    """One run of 20 GB in twenty."""
    odd = RunSummary(20_000 * MB, 9000 * MB, 30_000 * MB, 300.0)
    calm, shaken = estimate(after(*[USUAL] * 20)), estimate(after(*[USUAL] * 19, odd))

    assert shaken.base_bytes <= 1.1 * calm.base_bytes
    assert shaken.sd_bytes <= 1.3 * calm.sd_bytes


def test_old_runs_are_forgotten() -> None:
    """A project that has changed is learned again after a while."""
    record = after(*[USUAL] * 100, *[RunSummary(100 * MB, 10 * MB, 150 * MB, 60.0)] * KEEP_RUNS)

    assert estimate(record).base_bytes == pytest.approx(100 * MB, rel=0.1)
    assert record.runs == 100 + KEEP_RUNS


def test_coverage_says_how_often_the_prediction_was_right() -> None:
    """The first two runs are near the prior, the third is far from it."""
    near = RunSummary(220 * MB, 30 * MB, 300 * MB, 100.0)
    far = RunSummary(2000 * MB, 30 * MB, 2500 * MB, 100.0)

    assert after(near, near, far).coverage == pytest.approx(2 / 3)


def test_what_was_learned_survives_in_the_store(tmp_path: Path) -> None:
    """Classes are not mixed."""
    key, other = ClassKey("claude", "/src/app", "tests"), ClassKey("claude", "/src/app", "docs")
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        for _ in range(3):
            learn_run(store, key, USUAL)
        store.commit()
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        assert read_class(store, key) == after(USUAL, USUAL, USUAL)
        assert read_class(store, other).runs == 0


def test_history_shows_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a table, and as JSON with the coverage."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert call(["history"]) == 0
    assert "nothing yet" in capsys.readouterr().out
    (tmp_path / "ramherd").mkdir(0o700)
    with closing(SqliteStore(tmp_path / "ramherd/ramherd.db")) as store:
        learn_run(store, ClassKey("claude", "", "nightly"), USUAL)
        store.commit()

    assert call(["history"]) == 0
    assert "claude / - / nightly" in capsys.readouterr().out
    assert call(["history", "--json"]) == 0
    assert '"coverage": 1.0' in capsys.readouterr().out


def test_one_run_counts_a_sixth_beside_the_prior() -> None:
    """Its distance from the new base is part of the spread."""
    base = (5 * PRIOR.base_bytes + 400 * MB) / 6
    variance = (5 * PRIOR.sd_bytes**2 + (40 * MB) ** 2 + (400 * MB - base) ** 2) / 6

    assert estimate(after(USUAL)) == Estimate(
        base_bytes=int(base), sd_bytes=int(variance**0.5), peak_bytes=600 * MB,
        duration_s=300.0, runs=1, prior_share=5 / 6,
    )  # fmt: skip


def test_a_long_run_counts_for_more_than_a_short_one() -> None:
    """Both are clipped to the middle: 1 s and 3 s to 1.2 and 2.8; 100 and 400 MB to 130 and 370. A
    run of zero seconds counts as one second.
    """
    long = RunSummary(400 * MB, 0, 0, 3.0)
    base = (5 * PRIOR.base_bytes + (0.6 * 130 + 1.4 * 370) * MB) / 7

    for seconds in (0.0, 1.0):
        found = estimate(after(RunSummary(100 * MB, 0, 0, seconds), long))
        assert found.base_bytes == pytest.approx(base, abs=2)


def test_values_and_weights_are_averaged_in_pairs() -> None:
    """The prior counts as five runs; a value without a weight is a mistake."""
    assert mixed(90.0, [200.0, 300.0], [1.0, 3.0]) == (450 + 200 + 900) / 9
    with pytest.raises(ValueError, match="shorter"):
        mixed(90.0, [200.0, 300.0], [1.0])


def test_a_quantile_lies_between_its_neighbours() -> None:
    """In proportion to its share."""
    three = [0.0, 10.0, 30.0]

    found = [quantile(three, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert found == [0.0, 5.0, 10.0, 20.0, 30.0]
    assert quantile([7.0], 0.9) == 7.0


def test_a_prediction_covers_two_standard_deviations() -> None:
    """To the byte."""
    edge = PRIOR.base_bytes + 2 * PRIOR.sd_bytes

    assert after(RunSummary(edge, 0, 0, 1.0)).covered == 1
    assert after(RunSummary(edge + 1, 0, 0, 1.0)).covered == 0


def test_each_agent_has_a_prior_of_its_own() -> None:
    """An unknown command has the prior of claude."""
    assert prior_of("codex").base_bytes == 165 * MB
    assert prior_of("claude") is prior_of("my-script") is PRIOR
