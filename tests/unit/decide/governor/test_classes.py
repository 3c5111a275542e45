"""What is learned from past runs."""

from contextlib import closing
from pathlib import Path

import pytest

from ramherd.cli.main import call
from ramherd.core.memory import MB, PRIOR
from ramherd.decide.governor.classes import KEEP_RUNS, ClassRecord, RunSummary, estimate, learn
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
    """One run is a fifth of the prior's weight."""
    assert 215 * MB < estimate(after(USUAL)).base_bytes < 260 * MB
    assert estimate(after(*[USUAL] * 60)).base_bytes == pytest.approx(400 * MB, rel=0.05)


def test_what_a_job_was_said_to_need_stands_in_for_the_prior() -> None:
    """With half of it as the spread, and the less the more runs were seen. More than the prior
    says nothing about the others of its class.
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
    """A project that changed is known again after a while."""
    record = after(*[USUAL] * 100, *[RunSummary(100 * MB, 10 * MB, 150 * MB, 60.0)] * KEEP_RUNS)

    assert estimate(record).base_bytes == pytest.approx(100 * MB, rel=0.1)
    assert record.runs == 100 + KEEP_RUNS


def test_coverage_says_how_often_the_prediction_was_right() -> None:
    """The first two are near the prior, the third is far from it."""
    near = RunSummary(220 * MB, 30 * MB, 300 * MB, 100.0)
    far = RunSummary(2000 * MB, 30 * MB, 2500 * MB, 100.0)

    assert after(near, near, far).coverage == pytest.approx(2 / 3)


def test_what_was_learned_survives_in_the_store(tmp_path: Path) -> None:
    """And classes do not mix."""
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
    with closing(SqliteStore(tmp_path / "ramherd/ramherd.db")) as store:
        learn_run(store, ClassKey("claude", "", "nightly"), USUAL)
        store.commit()

    assert call(["history"]) == 0
    assert "claude / - / nightly" in capsys.readouterr().out
    assert call(["history", "--json"]) == 0
    assert '"coverage": 1.0' in capsys.readouterr().out
