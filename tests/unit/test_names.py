"""One meaning for each name: classes, files and verbs in the whole source."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import ramherd

PACKAGE = Path(ramherd.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# What every package may have, with the same meaning in each: its entry, and how it shows itself.
IN_EVERY_PACKAGE = {"__init__", "__main__", "main", "render"}
# One subject, handled in several layers: its nouns, its rows, its rules, its sentences.
SAME_SUBJECT = {
    "admission", "alerts", "classes", "clock", "machine", "memory", "reasons",
    "sightings", "subagent_slots",
}  # fmt: skip
# Words that a reader cannot search for: everything is told, heard and taken.
VERBS = re.compile(r"_?(hear|tell|say|note|look|take|give|keep|settle|attend|hang_up|hand_on)(_|$)")


def definitions(kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterator[tuple[str, str]]:
    """(name, file) of each definition in the source."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kind):
                yield node.name, str(path.relative_to(PACKAGE))  # type: ignore[attr-defined]


def test_a_class_name_has_one_meaning() -> None:
    """Whoever searches for a class finds one."""
    found = defaultdict(set)
    for name, path in definitions(ast.ClassDef):
        found[name].add(path)
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_a_file_name_has_one_meaning() -> None:
    """But for parallel places: the doctor reads and checks by theme, SQL lies beside the functions
    that use it, and a verb of the command line is named like the module it calls.
    """
    found = defaultdict(set)
    for path in FILES:
        found[path.stem].add(path.parent.relative_to(PACKAGE).as_posix())
    several = {
        stem: rooms
        for stem, rooms in found.items()
        if len(rooms - {"cli"}) > 1 and stem not in IN_EVERY_PACKAGE | SAME_SUBJECT
    }
    parallel = ({"doctor/read", "doctor/check"}, {"store", "store/sql"})
    assert {stem: rooms for stem, rooms in several.items() if rooms not in parallel} == {}


def test_verbs_say_what_is_done() -> None:
    """receive, send, record, emit, read, parse, choose, start, stop: not hear, tell, note, take."""
    functions = definitions((ast.FunctionDef, ast.AsyncFunctionDef))
    found = {f"{path}: {name}" for name, path in functions if VERBS.match(name)}
    assert found == set()
