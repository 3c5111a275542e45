"""The table of `ramherd jobs`, and the screen of `--watch`."""

from typing import Any

import pytest

from ramherd.core.units import GIB, MIB
from ramherd.show.job_table import render_counts, render_table, short_size
from ramherd.show.redraw import fit_rows

NOW_S = 1_000_000.0


def job(number: int | None, name: str, state: str, **changes: Any) -> dict[str, Any]:
    return {
        "number": number, "name": name, "state": state, "herd": "01AAAAAAAAAAAAAAAAAA5K2Q9X",
        "reason": {"why": "submitted"}, "updated_s": NOW_S - 65, "attempts": 1, "wish": None,
        **changes,
    }  # fmt: skip


RUNNING = job(
    2, "delta", "running", used_bytes=340 * MIB, grant_bytes=1.2 * GIB, started_s=NOW_S - 70
)
WAITING = job(3, "docs", "waiting", reason={"why": "after", "jobs": "delta"})
FAILED = job(
    1, "lint", "failed", reason={"why": "exited", "code": 3}, started_s=NOW_S - 9, ended_s=NOW_S - 8
)


def test_running_jobs_come_first_and_those_that_ended_last() -> None:
    """Each with its number, its memory, its time, and what it waits for or how it ended."""
    assert render_table([FAILED, WAITING, RUNNING], 80, NOW_S) == [
        "NO  NAME   STATE       MEMORY   TIME  DETAILS",
        " 2  delta  running  340M/1.2G  1m10s",
        " 3  docs   waiting             1m05s  after delta",
        " 1  lint   failed               1.0s  exit 3",
    ]
    assert render_counts([FAILED, WAITING, RUNNING]) == "1 running, 1 waiting, 1 failed"


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(columns: int) -> None:
    """Names give way first, and no line is empty."""
    long = {"why": "store", "what": "a rather long story of a disk that is full " * 3}
    found = [job(10 + n, "n" * 60 + str(n), "queued", reason=long) for n in range(3)]
    lines = render_table(found, columns, NOW_S)

    assert max(map(len, lines)) <= columns
    assert all("queued" in line for line in lines[1:])
    if columns >= 80:
        assert all("a rather long story" in line for line in lines[1:])


def test_the_herd_is_a_column_if_there_are_several() -> None:
    """By the characters that commands take."""
    other = job(4, "x", "queued", herd="01BBBBBBBBBBBBBBBBBBABCDEF")
    header, *lines = render_table([RUNNING, other], 80, NOW_S)

    assert header.endswith("HERD")
    assert [line[-6:] for line in lines] == ["5K2Q9X", "ABCDEF"]


def test_a_name_reaches_no_terminal_as_it_is() -> None:
    """Control sequences are shown as question marks, and a line stays one line."""
    hostile = job(None, "a\x1b[2J\nb", "failed", reason={"why": "not_started", "what": "x\n\ty"})
    _header, line = render_table([hostile], 80, NOW_S)

    assert " -  a?[2J?b  failed" in line
    assert line.endswith("x y")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0K"), (372_736, "364K"), (45 * MIB, "45M"), (999 * MIB, "999M"), (GIB, "1.0G")],
)
def test_a_size_has_four_characters(size: int, text: str) -> None:
    """Two of them and a slash are a column."""
    assert short_size(size) == text


def test_a_screen_shows_its_last_line_whatever_its_height() -> None:
    """The line that counts all jobs."""
    lines = [f"line {number}" for number in range(10)]

    assert fit_rows(lines, 10) == lines
    assert fit_rows(lines, 5) == ["line 0", "line 1", "line 2", "... and 6 more", "line 9"]
    assert len(fit_rows(lines, 2)) == 2
