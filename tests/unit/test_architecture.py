"""Rules of the source that import-linter does not hold: single calls, files that are named, who
changes a run. The directions between packages are contracts in pyproject.toml.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from ramherd.act.run import HoldTimes, LiveRun, Usage
from support.source_files import FILES, PACKAGE, find_imports, imports

# The keeper, and what it uses of the system.
KEEPER = {f"ramherd.keeper.{path.stem}" for path in (PACKAGE / "keeper").glob("[!_]*.py")} | {
    "ramherd.keeper.__main__",
    # Loaded by a child that could not be started, to say why.
    "ramherd.core.exec_limits",
    "ramherd.system.descendants",
    "ramherd.system.environ",
    "ramherd.system.files",
    "ramherd.system.holes",
    "ramherd.system.own_process",
    "ramherd.system.proc_stat",
    "ramherd.system.splice",
    "ramherd.system.termination",
    "ramherd.system.wait",
}
KEEPER_STDLIB = {
    "_socket", "gc",
    "__future__", "ctypes", "errno", "fcntl", "json", "os", "resource", "select", "signal", "stat",
    "struct", "sys", "time",
}  # fmt: skip
ROOT = PACKAGE.parent.parent
FILE_NAMES = re.compile(r"(?<![\w/.$])[a-z_0-9]+(?:/[a-z_0-9]+)+\.(?:py|md)\b")
DOCS = sorted((ROOT / "docs").glob("*.md"))
PURE = ("core", "decide", "strays.judge", "doctor.check")
# Reasons that tell what happened, and decide nothing.
FACTS = {
    "ADOPTED", "ASKED", "HERD_OVER", "KEEPER_LOST", "LARGE_SERVER", "LEASE_WITHOUT_OWNER",
    "LEDGER_SET_ASIDE", "NO_RUNTIME", "ON_DONE_FAILED", "RESIDUE", "RUNTIME_RESTORED", "STORE",
    "STORE_RESTORED", "SUBMITTED", "SUPERVISOR_LOST", "UNKILLABLE", "WARNING_SIGN",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}


def modules_of(layer: str) -> list[str]:
    return [name for name in FILES if name.startswith(f"ramherd.{layer}.")]


def outside_of(module: str) -> set[str]:
    """The top-level names outside of ramherd that it imports."""
    return {name.split(".")[0] for name in imports(module)} - {"ramherd"}


def test_the_whole_package_is_looked_at() -> None:
    """A rule about files that nobody finds holds nothing."""
    assert {"ramherd.decide.engine", "ramherd.keeper.keeper"} <= set(FILES)
    assert "ramherd.keeper.keeper" in imports("ramherd.keeper.__main__")
    assert all(modules_of(layer) for layer in PURE)


def test_no_module_lies_beside_the_packages() -> None:
    """A newcomer guesses the content from the path, and a path has a room in it."""
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("module", [name for layer in PURE for name in modules_of(layer)])
def test_decisions_are_made_of_plain_data(module: str) -> None:
    """What is pure calls nothing that reads, prints or compiles; its imports are a contract."""
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(FILES[module].read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }

    assert not calls & IMPURE_CALLS


def test_the_keeper_is_small() -> None:
    """It and what it imports: each other, and little of the standard library."""
    reached, edge = set(), ["ramherd.keeper.__main__"]
    while edge:
        module = edge.pop()
        if module not in reached:
            reached.add(module)
            edge += [name for name in imports(module) if name.startswith("ramherd.")]

    assert reached == KEEPER
    assert {name for module in reached for name in outside_of(module)} <= KEEPER_STDLIB
    # Their packages are loaded with them.
    for package in ("ramherd.__init__", "ramherd.keeper.__init__", "ramherd.system.__init__"):
        assert imports(package) == set()


def test_only_the_store_knows_which_database_it_is() -> None:
    """Everybody else has statements, rows and `StoreError`."""
    users = {module for module in FILES if "sqlite3" in imports(module)}

    assert users == {"ramherd.store.sqlite", "ramherd.store.restore", "ramherd.store.ledger_file"}


@pytest.mark.parametrize("name", ["pyproject.toml", *(f"docs/{p.name}" for p in DOCS)])
def test_a_page_names_files_that_exist(name: str) -> None:
    """Below the package, or below the root."""
    assert missing_files((ROOT / name).read_text(), PACKAGE) == []


def test_comments_name_files_that_exist() -> None:
    """A file that moved is found by those who read of it."""
    found = {name: missing_files(path.read_text(), path.parent) for name, path in FILES.items()}

    assert {name: missing for name, missing in found.items() if missing} == {}


def missing_files(text: str, near: Path) -> list[str]:
    return [
        name
        for name in FILE_NAMES.findall(text)
        if not any((place / name).exists() for place in (PACKAGE, ROOT, near))
    ]


def test_only_act_run_changes_a_live_run() -> None:
    """Other modules ask, and call its transitions."""
    names = {field.name for part in (LiveRun, Usage, HoldTimes) for field in fields(part)}
    found = {
        f"{module}: {ast.unparse(target)}"
        for module, path in FILES.items()
        if module != "ramherd.act.run" and "LiveRun" in (text := path.read_text())
        for target in assigned(ast.parse(text))
        if target.attr in names and ast.unparse(target.value) != "self"
    }

    assert found == set()


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that any statement sets or deletes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node


def test_unit_tests_start_no_process() -> None:
    """They are values alone, so that they are quick and never fail by chance."""
    found = {
        path.name
        for path in (ROOT / "tests/unit").rglob("*.py")
        if set(find_imports(ast.parse(path.read_text()))) & {"subprocess", "multiprocessing"}
    }

    assert found == set()


def nodes_of(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """(module, node) for all nodes of these kinds in the source."""
    for module, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kinds):
                yield module, node


def test_reasons_of_decisions_are_made_where_it_is_decided() -> None:
    """Other modules report facts: what a user, the keeper, the store or the ledger did."""
    found = {
        (module, ast.unparse(node.args[0]).removeprefix("Why."))
        for module, node in nodes_of(ast.Call)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason"
        if not module.startswith(("ramherd.decide.", "ramherd.strays.judge."))
    }
    # One reads a stored reason, the other has PAUSED or RESUMED.
    found -= {("ramherd.core.reasons", "Why(why)"), ("ramherd.core.reasons", "UNKNOWN")}
    found -= {("ramherd.store.service_requests", "why")}

    assert {why for _module, why in found} <= FACTS, found


def test_three_protocols() -> None:
    """Each has two implementations; an agent's has its reader of events beside it."""
    found = {
        node.name
        for _module, node in nodes_of(ast.ClassDef)
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
    }

    assert found == {"Agent", "EventReader", "Pen", "Store"}


def test_only_a_program_as_a_whole_catches_everything() -> None:
    """Others catch what they can handle. To clean up and raise again is not to catch."""
    found = {
        module
        for module, node in nodes_of(ast.ExceptHandler)
        if isinstance(node, ast.ExceptHandler)
        if node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        if not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    }

    assert found <= {"ramherd.cli.main", "ramherd.hook.main", "ramherd.supervisor.loop"}
