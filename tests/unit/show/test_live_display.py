"""The progress display: it fits the terminal, whatever runs are called."""

import os
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Event, Reason, Why
from ramherd.core.units import GIB, MIB
from ramherd.show.live_display import LiveShow, cut, render_live
from ramherd.show.view import RunLine, View
from support.make import HERD
from unit.show.test_nonblocking_writer import a_pipe

WAITS = Reason(Why.NO_ROOM_BUDGET, need_bytes=GIB, have_bytes=MIB, budget_bytes=2 * GIB)


def line(name: str = "build", **changes: Any) -> RunLine:
    values = {"name": name, "attempt": 1, "used_bytes": MIB, "ran_s": 1.0, "ending": False}
    return RunLine(**{**values, **changes})


def view(*runs: RunLine, **changes: Any) -> View:
    values = {
        "herd": HERD, "wall_s": 10.0, "total": 100, "done": 3, "failed": 1, "cancelled": 1,
        "used_bytes": GIB, "budget_bytes": 2 * GIB, "available_bytes": 3 * GIB, "waits_for": WAITS,
    }  # fmt: skip
    return View(runs=runs, **{**values, **changes})


def cells(text: str) -> int:
    """How wide a terminal draws it, at most."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def test_all_that_matters_is_shown() -> None:
    """Done of total, running, queued, failed, time, ETA; used of budget; the runs; who waits."""
    first, memory, *rest = render_live(view(line("build", attempt=2, ending=True)), 120, 24)

    assert first == "[#.......................] 5/100  1 running  94 queued  1 failed  10s  " + (
        "about 3m10s to go"
    )
    assert memory == "[############............] 1 GiB of 2 GiB  machine has 3 GiB"
    assert rest == [
        "      1 MiB              1.0s  build (run 2) ending",
        "next waits: needs 1 GiB, but only 1 MiB of the 2 GiB budget is free",
    ]


def test_who_is_held_is_seen() -> None:
    """What it holds of what it may, and for how long it stands; the level, unless it is calm."""
    held, ending = line(grant_bytes=2 * MIB, held_s=3.0), line(held_s=3.0, ending=True)
    _first, memory, *rest = render_live(view(held, ending, level="tight"), 120, 24)

    assert memory.endswith("machine has 3 GiB  level tight  2 held")
    assert rest[:2] == [
        "      1 MiB/2 MiB        1.0s  build held for 3.0s",
        "      1 MiB              1.0s  build ending",
    ]


def test_the_largest_runs_come_first_and_the_rest_is_counted() -> None:
    """As many as there are rows for."""
    runs = [line(f"r{n}", used_bytes=n * MIB) for n in range(50)]

    lines = render_live(view(*runs), 80, 12)

    assert [text.split()[-1] for text in lines[2:9]] == [f"r{n}" for n in range(49, 42, -1)]
    assert lines[9] == "  and 43 more"


def test_before_the_first_end_there_is_no_guess() -> None:
    """An ETA from nothing is no ETA."""
    early = view(done=0, failed=0, cancelled=0)

    assert early.eta_s is None
    assert "to go" not in render_live(early, 80, 24)[0]


def test_an_empty_budget_has_an_empty_bar() -> None:
    """Nothing is divided by it; more than the budget fills the bar and no more."""
    empty = render_live(view(budget_bytes=0, total=0, done=0, failed=0, cancelled=0), 80, 24)
    over = render_live(view(used_bytes=9 * GIB), 80, 24)

    assert all(text.startswith("[" + "." * 24 + "]") for text in empty[:2])
    assert over[1].startswith("[" + "#" * 24 + "]")


def test_who_waits_is_said_only_while_somebody_does() -> None:
    """The last job's old reason is of no use once it runs."""
    assert not any("waits" in text for text in render_live(view(total=5), 80, 24))


@given(
    st.lists(st.text(max_size=60), max_size=30), st.integers(2, 120), st.integers(6, 40)
)  # fmt: skip
def test_the_display_fits_the_terminal(names: list[str], columns: int, rows: int) -> None:
    """In width, with wide characters too, and in height with the cursor's line below."""
    lines = render_live(view(*(line(name) for name in names)), columns, rows)

    assert len(lines) < rows
    assert all(cells(text) < columns for text in lines)


@pytest.mark.parametrize("rows", [3, 4, 5])
def test_the_display_fits_a_low_terminal(rows: int) -> None:
    """Or it scrolls, and is drawn again further down each time."""
    assert len(render_live(view(*[line()] * 9), 80, rows)) < rows


@given(st.text(max_size=60))
def test_no_control_character_reaches_the_terminal(name: str) -> None:
    """Whatever a job is called: no escape, no newline, no half of a character."""
    for text in render_live(view(line(name), line(f"\x1b[2J{name}\r\n\x9b")), 200, 24):
        assert text.isprintable()


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [("abc", 3, "abc"), ("abcd", 3, "abc"), ("日本語", 4, "日本"), ("日本語", 5, "日本"),
     ("a日", 2, "a"), ("", 0, ""), ("a", 0, "")],
)  # fmt: skip
def test_wide_characters_take_two_cells(text: str, columns: int, found: str) -> None:
    """Cut where the next one would not fit."""
    assert cut(text, columns) == found


def event(kind: str, reason: Reason) -> Event:
    return Event(kind, reason, 0.0, HERD)


def test_what_is_drawn_is_drawn_over() -> None:
    """Up by as many lines as there were, and everything below is cleared."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        show.update(lambda: view(line()))
        drawn = pipe.read().count(b"\n")
        show.close()

        assert drawn
        assert pipe.read().decode() == f"\x1b[{drawn}F\x1b[J"


def test_it_is_not_drawn_more_often_than_can_be_seen() -> None:
    """The view is not even made."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        show.update(view)
        assert pipe.read()

        show.update(lambda: pytest.fail("was made"))

        assert pipe.read() == b""


def test_only_what_went_wrong_stays_on_the_screen() -> None:
    """Starts and ends are seen in the table."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        show.event(event("run_started", Reason(Why.FITS, need_bytes=1, have_bytes=1)), "a")
        show.event(event("job_done", Reason(Why.EXITED, code=0)), "a")
        assert pipe.read() == b""
        show.event(event("job_failed", Reason(Why.EXITED, code=1)), "a")
        assert pipe.read() == b"\x1b[Jfailed    a: exit status 1\n"


def test_a_terminal_that_is_gone_does_not_end_the_herd() -> None:
    """The window was closed: nobody reads, and the runs are ended in order all the same."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        pipe.hang_up()

        show.update(lambda: view(line()))
        show.event(event("job_failed", Reason(Why.EXITED, code=1)), "a")
        show.close()


def test_a_terminal_that_does_not_know_its_size_is_drawn_on() -> None:
    """A new pty says 0 x 0 until somebody sets it: script, docker run -t, CI."""
    ours, theirs = os.openpty()
    with open(theirs, "w") as out:
        LiveShow(out).update(lambda: view(line("build")))
        drawn = os.read(ours, 4096)
    os.close(ours)

    assert b"build" in drawn
