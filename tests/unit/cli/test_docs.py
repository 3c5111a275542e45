"""What the pages tell users to type is understood."""

import os
import re
import shlex
from difflib import unified_diff
from pathlib import Path

import pytest

from ramherd.cli.parser import make_parser
from support.generated import FILES, render_keys_to_come

ROOT = Path(__file__).parents[3]
PAGES = (
    "README.md",
    "docs/troubleshooting.md",
    "docs/config.md",
    "docs/strays.md",
    "docs/doctor.md",
    "docs/watch.md",
    "docs/hook.md",
    "docs/agents.md",
    "docs/service.md",
    "docs/jobs.md",
    "docs/top.md",
)
BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = re.compile(r"\[.*?\]")


def commands() -> list[tuple[str, str]]:
    """Each line of a plain block that calls ramherd, as far as `--` and without comments."""
    return [
        (page, line)
        for page in PAGES
        for block in BLOCK.findall((ROOT / page).read_text())
        for line in block.splitlines()
        if re.match(r"(\w+=\S+ )*ramherd \w", line)
    ]


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_of_a_page_is_understood(page: str, line: str) -> None:
    """By the parser that a user's call meets."""
    words = shlex.split(PLACEHOLDER.sub("", line), comments=True)
    argv = words[words.index("ramherd") + 1 :]
    argv = argv[: argv.index("--")] if "--" in argv else argv
    assert make_parser(argv[0]).parse_args(argv[1:]), page


@pytest.mark.parametrize("name", FILES)
def test_what_is_generated_is_current(name: str) -> None:
    """From the source; `make generate` writes it. Read its diff as a user would."""
    text = (ROOT / name).read_text()
    current = FILES[name](text)
    changes = unified_diff(text.splitlines(), current.splitlines(), name, "generated", lineterm="")
    assert text == current, "run `make generate`:\n" + "\n".join(changes)


def test_the_page_lists_the_keys_to_come() -> None:
    """Those of the schema, and no other."""
    assert f"The keys {render_keys_to_come()} are reserved" in (ROOT / "docs/jobs.md").read_text()


def test_links_between_pages_lead_somewhere() -> None:
    """Files that exist; headings are not looked at."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
            if "://" not in target:
                assert os.path.exists(ROOT / os.path.dirname(page) / target), f"{page}: {target}"
