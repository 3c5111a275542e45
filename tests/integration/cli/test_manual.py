"""The manual pages: one for each verb, which `man` and `mandoc` show without a complaint."""

import subprocess
from pathlib import Path

import pytest

from integration.conftest import need
from ramherd.cli.manual import render_pages, roff
from ramherd.cli.verbs import VERBS
from ramherd.config.keys import RUN_KEYS


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("man1")
    for name, text in render_pages().items():
        (directory / name).write_text(text)
    return sorted(directory.iterdir())


def test_every_verb_has_a_page(pages: list[Path]) -> None:
    """And ramherd has one that names them all."""
    assert {page.name for page in pages} == {"ramherd.1", *(f"ramherd-{verb}.1" for verb in VERBS)}
    (main,) = [page.read_text() for page in pages if page.name == "ramherd.1"]
    assert all(rf"\fBramherd\-{verb}\fR(1)" in main for verb in VERBS)


def test_the_pages_are_well_formed(pages: list[Path]) -> None:
    """mandoc has no warning about them."""
    mandoc = need("mandoc", "mandoc")
    done = subprocess.run(
        [mandoc, "-T", "lint", "-W", "warning", *map(str, pages)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("", "")


def test_a_page_has_all_options_and_examples(pages: list[Path]) -> None:
    """Also those that `--help` leaves out, as text that can be copied."""
    mandoc = need("mandoc", "mandoc")
    (run,) = [page for page in pages if page.name == "ramherd-run.1"]
    shown = subprocess.run(
        [mandoc, "-T", "ascii", "-O", "width=120", str(run)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    plain = "".join(part[1:] for part in f"_{shown}".split("\b"))

    assert all(key.flag in plain for key in RUN_KEYS)
    assert "ramherd run jobs.toml --budget 12GiB --json" in plain


def test_text_is_no_request() -> None:
    """A dot or an apostrophe at the start of a line, and a backslash anywhere."""
    assert roff(".toml") == r"\&.toml"
    assert roff("'a' \\ --b") == r"\&'a' \e \-\-b"
