"""What the verbs that bring an agent's changes to its user read from git, and write for people."""

import pytest

from ramherd.act.worktrees.git import find_reason
from ramherd.act.worktrees.job_branch import FileChange, parse_numstat
from ramherd.act.worktrees.merge_back import parse_overwritten, render_squash_message

OVERWRITTEN = """\
error: Your local changes to the following files would be overwritten by merge:
\tone file
\ttwo
Please commit your changes or stash them before you merge.
error: The following untracked working tree files would be overwritten by merge:
\tthree
Aborting
"""
DUBIOUS = """\
fatal: detected dubious ownership in repository at '/repo'
To add an exception for this directory, call:

\tgit config --global --add safe.directory /repo
"""


def test_lines_of_each_file() -> None:
    """Names may have blanks and tabs in them; a binary file has no lines."""
    text = "1\t2\ta b\0-\t-\timage.png\0" + "0\t3\tx\ty\0"

    assert parse_numstat(text) == [
        FileChange("a b", 1, 2), FileChange("image.png", None, None), FileChange("x\ty", 0, 3),
    ]  # fmt: skip
    assert parse_numstat("") == []


def test_files_that_git_would_overwrite() -> None:
    """Changed and untracked ones."""
    assert parse_overwritten(OVERWRITTEN) == ["one file", "two", "three"]
    assert parse_overwritten("fatal: Not possible to fast-forward, aborting.\n") == []


def test_the_reason_of_git_comes_before_its_advice() -> None:
    """Else the last line."""
    assert find_reason(DUBIOUS) == "detected dubious ownership in repository at '/repo'"
    assert find_reason("one\ntwo\n") == "two"
    assert find_reason("") == "no message"


@pytest.mark.parametrize(
    ("prompt", "messages", "expected"),
    [
        ("fix it", [], "fix it\n"),
        ("fix it\n\nall of it\n", [], "fix it\n\nfix it\n\nall of it\n"),
        ("fix it", ["Fix the parser\n\nIt was wrong."], "Fix the parser\n\nIt was wrong."),
        ("fix it", ["One\n\nx", "Two"], "fix it\n\n- One\n- Two\n"),
        (" ", [], "job\n"),
    ],
)
def test_the_text_of_the_one_commit(prompt: str, messages: list[str], expected: str) -> None:
    """What the agent wrote of its only commit; else the prompt, with the subjects of all."""
    assert render_squash_message("job", prompt, messages) == expected


def test_a_long_prompt_is_cut_in_the_subject_alone() -> None:
    """git shows 72 characters of it."""
    text = render_squash_message("job", "word " * 40, [])

    assert len(text.splitlines()[0]) <= 72
    assert text.splitlines()[0].endswith("...")
    assert ("word " * 40).strip() in text
