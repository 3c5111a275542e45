"""docs/screens.md shows what the programs show."""

from integration.conftest import need
from support.docs_screens import DOCS, capture, normal, parse


def test_the_screens_of_the_docs_are_those_of_the_programs() -> None:
    """`run`, `drill`, `jobs` and `status` in two sizes, without numbers that differ each time."""
    need("tmux", "tmux")
    captured = {title: normal(screen) for title, screen in capture().items()}
    shown = {title: normal(screen) for title, screen in parse(DOCS.read_text()).items()}

    assert captured == shown, "run `make screens`, and read what has changed"
