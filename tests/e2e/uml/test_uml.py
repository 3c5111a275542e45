"""cgroup v2 for real, wherever the tests run: the integration tests again, in User-mode Linux.

As root they have a cgroup of their own below the top; an ordinary user has what systemd gives
away with Delegate=yes. Sizes are small: memory and forks are some 20 times slower there. A machine
has one processor, so two of them run at a time.
"""

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from integration.conftest import need
from machines.outside import Ended
from machines.uml import run_in_uml

# Not in /tmp, which is in memory there: files would be charged as such.
PYTEST = (sys.executable, "-m", "pytest", "--basetemp=/var/tmp/uml", "--durations=5")
PENS = ("tests/integration/act/pens/test_pens.py", "-k", "cgroup2")
RUNS = (
    "tests/integration/act/pens/test_container.py", "tests/integration/keeper/test_deaths.py",
    "tests/integration/cli/test_run.py",
    "-k", "not polling and (test_container or test_deaths or test_a_signal_ends_everything "
    "or test_a_limit_kill or test_a_tool_child or test_leftovers)",
)  # fmt: skip
GRANTS = ("tests/integration/supervisor/test_grants.py", "-rP", "-k", "cgroup2 and only_late")
SERVICE = ("tests/integration/service/test_service.py", "-k", "cgroup2")
SMALL = {
    "RAMHERD_TEST_STORMS": "3",
    "RAMHERD_TEST_RUNS": "3",
    "RAMHERD_TEST_GROWTH": "60",
    "XDG_STATE_HOME": "/tmp/state",
}
# The seed whose two agents are short and small: 4.8 s and 78 MiB (of 60 looked at).
DRILL = (sys.executable, "-m", "ramherd", "drill", "--agents", "2", "--seed", "42", "--json")
USERS = (None, "nobody")
Boots = dict[tuple[str, str | None], "Future[Ended]"]


@pytest.fixture(scope="module")
def boots() -> Iterator[Boots]:
    """All machines, the longest first."""
    need("linux.uml", "user-mode-linux")
    boot: Callable[..., Ended] = partial(run_in_uml, env=SMALL)
    with ThreadPoolExecutor(2) as pool:
        yield {
            ("runs", None): pool.submit(boot, [*PYTEST, *RUNS]),
            ("grants", None): pool.submit(boot, [*PYTEST, *GRANTS]),
            ("service", None): pool.submit(boot, [*PYTEST, *SERVICE]),
            **{("pens", user): pool.submit(boot, [*PYTEST, *PENS], user=user) for user in USERS},
            **{("drill", user): pool.submit(boot, DRILL, user=user) for user in USERS},
        }


def assert_passed(ended: Ended) -> None:
    print(ended.out, ended.err, f"{ended.wall_s:.0f} s", sep="\n")
    assert ended.code == 0
    assert "skipped" not in ended.out


def test_runs_deaths_and_containers(boots: Boots) -> None:
    """Limit kills, signals, leftovers, kill -9 of each part, and a container with a limit."""
    assert_passed(boots["runs", None].result())


def test_grants(boots: Boots) -> None:
    """Held by `memory.high` and freezing: no system call of the run fails."""
    assert_passed(boots["grants", None].result())


def test_a_service_that_dies_and_is_started_again(boots: Boots) -> None:
    """Its runs are adopted with the fleet that they are in."""
    assert_passed(boots["service", None].result())


@pytest.mark.parametrize("user", USERS)
def test_every_promise_of_a_pen(boots: Boots, user: str | None) -> None:
    """The conformance suite on cgroup v2; polling pens are the same on every kernel."""
    assert_passed(boots["pens", user].result())


@pytest.mark.parametrize("user", USERS)
def test_a_drill(boots: Boots, user: str | None) -> None:
    """Alone in a cgroup that is its own, as in a service: kernel limits without being root."""
    ended = boots["drill", user].result()
    assert ended.code == 0, ended.out + ended.err
    summary = json.loads(ended.out)
    assert (summary["pen"], summary["done"], summary["oom_kills"]) == ("cgroup2", 2, 0)
