"""[software.NAME] tables of settings files: programs that `ramherd ps` shall know too."""

from collections.abc import Mapping
from typing import Any

from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.strays.judge.software import KINDS_TO_ADD
from ramherd.strays.nouns import Kind, Software

LISTS = ("programs", "packages", "modules", "paths", "marks")
TEXTS = ("kind", "resume", "resume_last")


def parse_software(tables: Mapping[str, tuple[Any, str]]) -> list[Software]:
    return [parse_one(name, table, path) for name, (table, path) in tables.items()]


def parse_one(name: str, table: Any, path: str) -> Software:
    where = f"{path}, software {name!r}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", hint=f"write [software.{name}]")
    for key, value in table.items():
        check(key, value, where)
    kind = table.get("kind")
    if kind not in KINDS_TO_ADD:
        kinds = ", ".join(KINDS_TO_ADD)
        raise UsageError(f"{where}: {kind!r} is not a kind", hint=f"one of: {kinds}")
    if not any(table.get(key) for key in ("programs", "packages", "modules", "paths")):
        raise UsageError(f"{where} says nothing to know it by", hint="add programs or packages")
    given: dict[str, Any] = {key: tuple(table[key]) for key in LISTS if key in table}
    given |= {key: table[key] for key in ("resume", "resume_last") if key in table}
    return Software(name, Kind(kind), **given)


def check(key: str, value: Any, where: str) -> None:
    if key in LISTS:
        fits = isinstance(value, list) and all(isinstance(word, str) and word for word in value)
        if not fits:
            raise UsageError(f"{where}: {key!r} is not a list of words")
    elif key not in TEXTS:
        raise UsageError(f"{where} has an unknown key {key!r}", hint=nearest(key, (*LISTS, *TEXTS)))
    elif not isinstance(value, str):
        raise UsageError(f"{where}: {key!r} is not a text")
