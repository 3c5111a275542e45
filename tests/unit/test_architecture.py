"""Data flows one way: measure -> decide -> act -> show; and what the parts may cost."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ramherd

PACKAGE = Path(ramherd.__file__).parent
PROJECT = PACKAGE.parent.parent
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
MOST_LINES = 400

# Modules that compute, and neither read, wait, start, print nor guess.
PURE = {
    "__future__", "bisect", "collections", "dataclasses", "enum", "errno", "functools", "heapq",
    "itertools", "math", "operator", "re", "statistics", "types", "typing",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}

# layer -> what of ramherd it may not see
FORBIDDEN = {
    "measure": {"act", "decide", "show", "queue", "supervisor", "launch", "tally", "jobfile"},
    "show": {"act", "queue", "measure", "decide", "supervisor", "launch", "tally"},
    "act": {"decide", "show", "supervisor", "launch", "tally", "jobfile"},
    "queue": {"act", "show", "supervisor", "launch", "tally", "jobfile"},
    "agents": {"act", "decide", "show", "queue", "supervisor", "launch", "tally", "jobfile"},
    # The API knows the store, and nobody who decides or acts.
    "api": {"act", "decide", "supervisor", "launch", "tally", "session"},
    # The simulator runs the very decisions, on a machine of its own making.
    "sim": {"act", "show", "queue", "supervisor", "launch", "tally"},
}
KEEPER_PARTS = (
    "keep", "keeper", "become", "child", "descendants", "door", "feed", "files", "requests",
    "streams", "tending",
)  # fmt: skip
KEEPER = {f"ramherd.act.{name}" for name in KEEPER_PARTS}
KEEPER_STDLIB = {
    "_socket", "gc",
    "__future__", "ctypes", "errno", "json", "os", "resource", "select", "signal", "sys", "time",
}  # fmt: skip
# What each costs is in the facts: asyncio 11 MB, rich 7, textual 24.
HEAVY = (
    "asyncio", "rich", "textual", "psutil", "uvicorn", "starlette", "pydantic", "sqlalchemy",
    "prometheus_client", "msgspec", "redis", "mcp", "http", "email", "ssl", "multiprocessing",
    "concurrent.futures", "logging", "unittest", "xml", "argparse", "tomllib", "difflib",
    "urllib.request", "ramherd.cli", "ramherd.sim",
)  # fmt: skip


def imports(module: str) -> set[str]:
    """What a module imports anywhere in it, but for what only a type checker sees."""
    return set(find_imports(ast.parse(FILES[module].read_text())))


def find_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "relative imports hide where they lead"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in FILES or f"{inner}.__init__" in FILES else str(node.module)
    elif not is_for_the_type_checker(node):
        for child in ast.iter_child_nodes(node):
            yield from find_imports(child)


def is_for_the_type_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def modules_of(layer: str) -> list[str]:
    return [name for name in FILES if name.split(".")[1:2] == [layer]]


def outside_of(module: str) -> set[str]:
    """The top-level names outside of ramherd that it imports."""
    return {name.split(".")[0] for name in imports(module)} - {"ramherd"}


def layers_seen_by(module: str) -> set[str]:
    return {name.split(".")[1] for name in imports(module) if name.startswith("ramherd.")}


def test_the_whole_package_is_looked_at() -> None:
    """A rule about files that nobody finds holds nothing."""
    assert {"ramherd.decide.engine", "ramherd.keeper.keeper", "ramherd.supervisor.loop"} <= set(
        FILES
    )
    assert "ramherd.keeper.keeper" in imports("ramherd.keeper.__main__")
    assert all(modules_of(layer) for layer in (*FORBIDDEN, "decide", "cli"))


@pytest.mark.parametrize("module", modules_of("decide"))
def test_decisions_are_made_of_plain_data(module: str) -> None:
    """No clock, file, process, log, thread or chance: values in, actions out."""
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(FILES[module].read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }

    nouns = {"model", "grants", "health", "processes", "straypolicy", "units"}
    assert layers_seen_by(module) <= {*nouns, "decide"}
    assert outside_of(module) <= PURE
    assert not calls & IMPURE_CALLS


@pytest.mark.parametrize(
    "module",
    [
        *(
            f"ramherd.{name}"
            for name in (
                "model",
                "briefs",
                "machine",
                "procid",
                "reasons",
                "grants",
                "processes",
                "straypolicy",
                "units",
                "errors",
            )
        ),
        *modules_of("health"),
    ],
)
def test_what_decisions_are_made_of_is_pure_too(module: str) -> None:
    """The nouns, the units and the errors bring nothing else in."""
    nouns = {"briefs", "machine", "model", "procid", "reasons"}
    assert layers_seen_by(module) <= {*nouns, "errors", "units"}
    assert outside_of(module) <= PURE


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_data_flows_one_way(layer: str) -> None:
    """Who measures does not act, who shows does not measure."""
    seen = {module: layers_seen_by(module) & FORBIDDEN[layer] for module in modules_of(layer)}

    assert {module: layers for module, layers in seen.items() if layers} == {}


def test_only_the_command_line_knows_the_command_line() -> None:
    """What `ramherd run` can do, a program can."""
    know = {module for module in FILES if "cli" in layers_seen_by(module)}

    assert {module for module in know if not module.startswith("ramherd.cli.")} == {
        "ramherd.__main__"
    }


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
    for package in ("ramherd.__init__", "ramherd.act.__init__"):
        assert imports(package) == set()


def loaded_by(*statements: str) -> set[str]:
    """The modules that a fresh interpreter has after these, without site or environment."""
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
    code += "; ".join(statements) + "; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_keeper_loads_neither_typing_nor_ctypes() -> None:
    """A megabyte each, for as long as the runs live."""
    loaded = loaded_by("import ramherd.keeper.keeper")

    assert not loaded & {"typing", "ctypes", "subprocess", "dataclasses", "pathlib", "socket"}


def test_the_supervisor_loads_nothing_heavy() -> None:
    """Its own memory counts: displays, servers and parsers are for those who need them."""
    loaded = loaded_by("import ramherd.supervisor.loop", "import ramherd.supervisor.run_herd")

    assert "ramherd.supervisor.run_herd" in loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_no_file_is_longer_than_can_be_read(folder: str) -> None:
    """120 lines are aimed at, 400 are the end."""
    lines = {
        str(path.relative_to(PROJECT)): len(path.read_text().splitlines())
        for path in (PROJECT / folder).rglob("*.py")
    }

    assert lines
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
