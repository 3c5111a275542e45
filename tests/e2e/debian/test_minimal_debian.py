"""The commands of README.md on a minimal Debian, with the packages that README.md names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import need
from machines.minimal_debian import Debian, minimal_debian

# Tests that start programs of the system, or need mounts and cgroups, and one file of values. All
# of `make test` would take ten minutes.
SOME = (
    "tests/unit/client tests/integration/act/pens/test_container.py "
    "tests/integration/act/test_git.py tests/integration/agents/test_worktree_ends.py "
    "tests/integration/bench/test_arena.py tests/integration/service/test_resume.py "
    "tests/integration/strays/test_left_behind.py"
)


@pytest.fixture(scope="module")
def debian() -> Iterator[Debian]:
    if os.geteuid() != 0:
        pytest.skip("only root can change its root directory")
    need("mmdebstrap", "mmdebstrap")
    need("git", "git")
    with minimal_debian() as made:
        yield made
    assert not made.root.exists()
    assert str(made.root) not in Path("/proc/self/mounts").read_text()


def test_make_demo_installs_the_package_alone_and_runs_all_agents(debian: Debian) -> None:
    """It shows what it installs, and development tools are not part of it."""
    ended = debian.run("make demo && .venv/bin/pip list", limit_s=300)
    print(ended.out, f"{ended.wall_s:.0f} s", sep="\n")

    assert ended.code == 0
    assert "make: installing ramherd into .venv" in ended.out
    assert "50 of 50 jobs done" in ended.out
    assert "pytest" not in ended.out
    assert "development tools" not in ended.out


def test_tests_pass_or_are_skipped_by_name(debian: Debian) -> None:
    """A program that README.md does not name is missing: its tests are skipped, none fails."""
    ended = debian.run(f"make test-integration TESTS='{SOME}'", limit_s=300)
    print(ended.out, f"{ended.wall_s:.0f} s", sep="\n")

    assert ended.code == 0
    assert "git is not installed: make test-tools (apt package git)" in ended.out
