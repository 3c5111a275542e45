"""The statements, as text: what another database has to understand."""

import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from ramherd.decide.resumption import INTERRUPTIONS
from ramherd.store.sql import classes, listing, migrations, records, service, strays

SHARED = (classes, listing, records, service, strays)
# Words that SQLite alone knows, and an upsert that does not name its key.
SQLITE_ONLY = re.compile(
    r"\bPRAGMA\b|INSERT OR |REPLACE INTO|\bGLOB\b|sqlite_|ON CONFLICT DO|[^\"]\bend\b(?= =|,)|\?\d",
    re.IGNORECASE,
)


def statements_of(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in vars(module).items():
        if name.isupper():
            yield from ((name, one) for one in ([value] if isinstance(value, str) else value))


@pytest.mark.parametrize("module", SHARED, ids=lambda module: module.__name__)
def test_statements_are_not_for_sqlite_alone(module: ModuleType) -> None:
    """A second database shares them all."""
    found = dict(statements_of(module))

    assert found
    assert {name: text for name, text in found.items() if SQLITE_ONLY.search(text)} == {}


def test_a_migration_is_a_tuple_of_single_statements() -> None:
    """Nothing is split: a semicolon in a value is only a semicolon."""
    for migration in migrations.MIGRATIONS:
        assert isinstance(migration, tuple)
        assert all(isinstance(one, str) and ";" not in one for one in migration)


def test_the_store_and_the_decision_agree_on_interruptions() -> None:
    """A job that may go on keeps its variables, and its herd has not ended."""
    assert set(re.findall(r"'(\w+)'", records.WAS_CUT_OFF)) == {"cancelled", *INTERRUPTIONS}
