"""The first example of README.md prints what README.md shows."""

import os
import re
import sys
from pathlib import Path

from integration.conftest import Ramherd, need
from support.screens import open_screen

README = Path(__file__).parents[3] / "README.md"
EXAMPLE = re.compile(r"^```\n\$ (.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SIZE_OR_TIME = re.compile(r"[\d.]+ ?(s|KiB|MiB|GiB)\b")


def without_figures(text: str) -> list[str]:
    """Jobs that run at the same time print in any order; sizes and times differ."""
    return sorted(SIZE_OR_TIME.sub("N", line) for line in text.splitlines())


def test_the_first_example_prints_what_is_shown(ramherd: Ramherd, tmp_path: Path) -> None:
    """On a terminal, as a reader would see it."""
    need("tmux", "tmux")
    example = EXAMPLE.search(README.read_text())
    assert example is not None
    command, shown = example.groups()
    env = {**ramherd.env, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with open_screen(["sh", "-c", command], env, tmp_path / "tmux", columns=100) as screen:
        screen.await_text("exit status 0")
        printed = screen.history().partition("exit status 0")[0]

    assert without_figures(printed) == without_figures(shown)
