"""Which job or herd a user means, asked of a real store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.conftest import Ramherd
from ramherd.cli.job_names import Named, find_herd, find_job, find_job_or_herd, is_herd
from ramherd.core.errors import UsageError
from ramherd.store.connect import open_store
from ramherd.store.protocol import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    state = tmp_path / "state/ramherd"
    state.mkdir(parents=True)
    with closing(open_store(state)) as store:
        yield store


def run_named(ramherd: Ramherd, *names: str) -> str:
    herd: str = ramherd.json([{"name": name, "command": "true"} for name in names])["herd"]
    return herd


def test_without_a_herd_there_is_no_job(store: Store) -> None:
    """The line says that nothing has run, not that the name is wrong."""
    for find in (find_herd, lambda store: find_job(store, "build")):
        with pytest.raises(UsageError, match="no herd has run yet"):
            find(store)


def test_a_name_means_the_newest_job_that_has_it(ramherd: Ramherd, store: Store) -> None:
    """`--herd` finds an older one; an id is found without it; the nearest name is the hint."""
    older, newer = run_named(ramherd, "build", "lint"), run_named(ramherd, "build", "unit tests")
    old_build, new_build = (find_job(store, "build", herd) for herd in (older, newer))
    assert find_herd(store) == newer != older == find_herd(store, older)
    assert find_job(store, "build") == new_build != old_build
    assert find_job(store, "lint") == find_job(store, "lint", older)
    assert find_job(store, old_build) == old_build
    with pytest.raises(UsageError, match=f"no job 'lint' in herd {newer}"):
        find_job(store, "lint", newer)
    with pytest.raises(UsageError) as unknown:
        find_job(store, "unit test")
    assert unknown.value.hint == "did you mean 'unit tests'?"
    with pytest.raises(UsageError, match="no herd 'build'"):
        find_job(store, "build", "build")
    with pytest.raises(UsageError, match="no job has the number 99") as unknown:
        find_job(store, "99")
    assert unknown.value.hint == "ramherd jobs --all"
    assert is_herd(store, older)
    assert not is_herd(store, "build")


def test_digits_are_the_number_of_a_job(ramherd: Ramherd, store: Store) -> None:
    """With `--herd` a name of that herd comes first: names may be digits too."""
    older, newer = run_named(ramherd, "build", "2"), run_named(ramherd, "1", "tests")
    assert [find_job(store, number) for number in "1234"] == [
        find_job(store, "build", older), find_job(store, "2", older),
        find_job(store, "1", newer), find_job(store, "tests", newer),
    ]  # fmt: skip
    assert find_job(store, "1") != find_job(store, "1", newer) == find_job(store, "3")
    assert find_job(store, "4", older) == find_job(store, "tests")


def test_a_herd_has_a_short_name(ramherd: Ramherd, store: Store) -> None:
    """The last characters of its id, or `last`; for verbs that take both, a job comes first."""
    older, newer = run_named(ramherd, "build"), run_named(ramherd, "last", "lint")
    assert find_herd(store, older[-6:].lower()) == older
    assert find_herd(store, "last") == newer
    assert find_job_or_herd(store, "last") == Named(job=find_job(store, "last"))
    assert find_job_or_herd(store, newer[-6:]) == Named(herd=newer)
    assert find_job_or_herd(store, "lint") == Named(job=find_job(store, "lint"))
    with pytest.raises(UsageError, match="no herd"):
        find_herd(store, older[-3:])
    with pytest.raises(UsageError, match="no job 'lin' in herd"):
        find_job_or_herd(store, "lin")
    store.write("UPDATE herds SET id = substr(id, 1, 20) || 'SAMEND'")
    store.commit()
    with pytest.raises(UsageError, match="2 herds end in 'SAMEND'"):
        find_herd(store, "SAMEND")
