"""cgroup v2 for real, wherever the tests run: the integration tests again, in User-mode Linux.

As root they have a cgroup of their own below the top; an ordinary user has what systemd gives
away with Delegate=yes. Sizes are small: memory and forks are some 20 times slower there.
"""

import json
import sys
from typing import Any

import pytest

from integration.conftest import need
from machines.uml import run_in_uml

# Not in /tmp, which is in memory there: files would be charged as such.
PYTEST = (sys.executable, "-m", "pytest", "--basetemp=/var/tmp/uml", "-rs")
SMALL = {"RAMHERD_STORM_TRIALS": "3", "RAMHERD_TEST_RUNS": "3"}
RUNS = (
    "test_deaths or test_container or test_a_signal_ends_everything or test_a_limit_kill "
    "or test_a_tool_child or test_leftovers"
)
FILES = [f"tests/integration/{name}" for name in ("test_container.py", "test_deaths.py",
                                                  "test_run.py")]  # fmt: skip


@pytest.fixture(autouse=True)
def uml() -> None:
    need("linux.uml", "user-mode-linux")
    need("mke2fs", "e2fsprogs")


def run_tests(*options: str, user: str | None = None) -> None:
    ended = run_in_uml([*PYTEST, *options], user=user, env=SMALL)
    print(ended.out, ended.err, f"{ended.wall_s:.0f} s", sep="\n")
    assert ended.code == 0
    assert "skipped" not in ended.out


@pytest.mark.parametrize("user", [None, "nobody"])
def test_every_promise_of_a_pen(user: str | None) -> None:
    """The conformance suite on cgroup v2; polling pens are the same on every kernel."""
    run_tests("tests/integration/test_pens.py", "-k", "cgroup2", user=user)


def test_runs_deaths_and_containers() -> None:
    """Limit kills, signals, leftovers, kill -9 of each part, and a container with a limit."""
    run_tests(*FILES, "-k", f"({RUNS}) and not polling", "--durations=8")


@pytest.mark.parametrize("user", [None, "nobody"])
def test_a_drill(user: str | None) -> None:
    """Alone in a cgroup that is its own, as in a service: kernel limits without being root."""
    env = {"XDG_STATE_HOME": "/tmp/state"}
    command = [sys.executable, "-m", "ramherd", "drill", "--agents", "2", "--json"]
    ended = run_in_uml(command, user=user, env=env)
    assert ended.code == 0, ended.out + ended.err
    summary: dict[str, Any] = json.loads(ended.out)
    assert (summary["pen"], summary["done"], summary["oom_kills"]) == ("cgroup2", 2, 0)
