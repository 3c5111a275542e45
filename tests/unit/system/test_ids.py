"""ULIDs."""

import pytest

from ramherd.system import ids
from ramherd.system.ids import new_id

ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def test_ids_are_unique_and_sorted() -> None:
    """Thousands within one millisecond too: the order of ids is the order of making."""
    made = [new_id() for _ in range(5000)]

    assert made == sorted(set(made))


def test_an_id_has_the_form_of_a_ulid() -> None:
    """26 letters of Crockford's alphabet, the first at most 7: 128 bits."""
    for made in (new_id() for _ in range(100)):
        assert len(made) == 26
        assert set(made) <= ALPHABET
        assert made[0] <= "7"


def test_an_id_tells_when_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ten letters are the milliseconds since 1970."""
    monkeypatch.setattr(ids, "_last", 0)
    monkeypatch.setattr("time.time", lambda: 1469918176.385)

    assert new_id()[:10] == "01ARYZ6S41"  # the example of the ULID specification


def test_a_clock_that_jumps_back_does_not_change_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one process an id always sorts after the one before."""
    before = new_id()
    monkeypatch.setattr("time.time", lambda: 1000.0)

    assert before < new_id() < new_id()
