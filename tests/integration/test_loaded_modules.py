"""The modules that a program loads when it starts: each costs memory and time."""

import subprocess
import sys

import pytest

from support.source_files import PACKAGE

# Measured: asyncio takes 11 MB, rich 7, textual 24.
HEAVY = (
    "asyncio", "rich", "textual", "psutil", "uvicorn", "starlette", "pydantic", "sqlalchemy",
    "prometheus_client", "msgspec", "redis", "mcp", "http", "email", "ssl", "multiprocessing",
    "concurrent.futures", "logging", "unittest", "xml", "argparse", "tomllib", "difflib",
    "urllib.request", "ramherd.cli", "ramherd.sim",
)  # fmt: skip


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


def test_no_adapter_is_loaded_before_it_is_asked_for() -> None:
    """The supervisor's memory counts: seven agents are seven files that most herds never use."""
    loaded = loaded_by("import ramherd.agents")

    assert {name for name in loaded if name.startswith("ramherd.agents")} == {"ramherd.agents"}


@pytest.mark.parametrize(
    "module",
    [
        "ramherd.supervisor.run_herd", "ramherd.service.main", "ramherd.keeper.keeper",
        "ramherd.hook.main", "ramherd.cli.run", "ramherd.cli.exec", "ramherd.cli.up",
        "ramherd.cli.submit", "ramherd.client.client", "ramherd.api.submission",
        "ramherd.cli.top", "ramherd.top.run_top", "ramherd.top.source", "ramherd.top.panels",
    ],
)  # fmt: skip
def test_what_guards_memory_uses_the_standard_library_alone(module: str) -> None:
    """Starlette and uvicorn are for the process of the API, Textual is for the process that draws
    `ramherd top`, and for no other.
    """
    loaded = {name.partition(".")[0] for name in loaded_by(f"import {module}")}

    assert loaded - set(sys.stdlib_module_names) - {"ramherd", "__main__"} <= {"__mp_main__"}


def test_the_process_of_the_api_loads_no_speedups() -> None:
    """Nothing that h11 and asyncio do not need."""
    path = [path for path in sys.path if path.endswith("site-packages")]
    loaded = loaded_by(f"sys.path += {path!r}", "import ramherd.api.server")

    assert {"starlette", "uvicorn", "h11"} <= loaded
    assert not loaded & {"uvloop", "httptools", "websockets", "zttp", "wsproto"}
