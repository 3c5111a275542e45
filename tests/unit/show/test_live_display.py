"""The progress display: it fits the terminal, whatever runs are called."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Event, Reason, Why
from ramherd.core.units import GIB, MIB
from ramherd.show.live_display import (
    BEGIN_FRAME,
    END_FRAME,
    WRAP_OFF,
    WRAP_ON,
    LiveShow,
    cells,
    clear_for,
    cut,
    plain,
    render_live,
    render_run,
)
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


def lines_of(shown: View, columns: int = 80, rows: int = 24, failed: str = "") -> list[str]:
    return [plain(text) for text in render_live(shown, columns, rows, failed)]


def test_a_job_that_is_counted_twice_is_not_missing_from_the_queue() -> None:
    """The counts of a service are newer than its runs: a job that has ended is still among them."""
    assert view(line("a"), line("b"), total=6).queued == 0


def test_the_time_left_of_a_resumed_herd_is_at_its_new_pace() -> None:
    """Jobs that had ended before it was resumed took none of the time since."""
    assert view(ended_before=3).eta_s == 10.0 / 2 * 95
    assert view(ended_before=5).eta_s is None


def test_all_that_matters_is_shown() -> None:
    """Done of total, running, queued, failed, time, the time left; memory; the runs; the wait."""
    lines = lines_of(view(line("build", attempt=2, ending=True)), 120, failed="a: exit status 1")

    assert lines == [
        f"[{'#' * 3}{'.' * 49}] 5/100  1 running  94 queued  1 failed  10s  about 3m10s left",
        f"[{'#' * 26}{'.' * 26}] 1 GiB of 2 GiB  machine has 3 GiB free",
        "   MEMORY   GRANTED    TIME  NAME",
        "    1 MiB              1.0s  build (run 2) ending",
        "last failed: a: exit status 1",
        "next waits: needs 1 GiB, but only 1 MiB of the 2 GiB budget is free",
    ]


def test_a_held_run_is_seen() -> None:
    """What it holds of what it may, and for how long it stands; the level, unless it is calm."""
    held, ending = line(grant_bytes=2 * MIB, held_s=3.0), line(held_s=3.0, ending=True)
    _first, memory, _head, *rest = lines_of(view(held, ending, level="tight"), 120)

    assert memory.endswith("machine has 3 GiB free  level tight  2 held")
    assert rest[:2] == [
        "    1 MiB     2 MiB    1.0s  build held for 3.0s",
        "    1 MiB              1.0s  build ending",
    ]


def test_what_is_in_swap_is_seen() -> None:
    """Beside what the run does."""
    row = plain(render_run(line(doing="turn 3", swapped_bytes=64 * MIB)))

    assert row.endswith("build  turn 3  64 MiB in swap")


def test_runs_keep_the_order_of_their_starts() -> None:
    """Whatever they use meanwhile; the youngest are counted where rows are few."""
    runs = [line(f"r{n}", used_bytes=n % 7 * MIB, ran_s=100.0 - n // 2) for n in range(50)]

    lines = lines_of(view(*runs), rows=12)

    assert [text.split()[-1] for text in lines[3:9]] == [f"r{n}" for n in range(6)]
    assert lines[9].strip() == "and 44 more"


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_bars_are_as_wide_as_the_window(columns: int) -> None:
    """Both of one width, with what the longer text needs beside them."""
    first, second = lines_of(view(), columns)[:2]

    assert first.index("]") == second.index("]")
    assert columns - 10 < len(first) < columns


def test_without_room_for_a_bar_there_is_none() -> None:
    """The numbers count more."""
    assert lines_of(view(), 40)[0].startswith("5/100  0 running")


def test_before_the_first_end_there_is_no_guess() -> None:
    """An ETA from nothing is no ETA."""
    early = view(done=0, failed=0, cancelled=0)

    assert early.eta_s is None
    assert "left" not in lines_of(early)[0]


def test_an_empty_budget_has_an_empty_bar() -> None:
    """Nothing is divided by it; more than the budget fills the bar and no more."""
    empty = lines_of(view(budget_bytes=0, total=0, done=0, failed=0, cancelled=0))
    over = lines_of(view(used_bytes=9 * GIB))

    assert all(set(text.partition("]")[0]) == {"[", "."} for text in empty[:2])
    assert set(over[1].partition("]")[0]) == {"[", "#"}


def test_who_waits_is_said_only_while_somebody_does() -> None:
    """The last job's old reason is of no use once it runs."""
    assert not any("waits" in text for text in lines_of(view(total=5)))


@given(
    st.lists(st.text(max_size=60), max_size=30), st.integers(2, 120), st.integers(6, 40)
)  # fmt: skip
def test_the_display_fits_the_terminal(names: list[str], columns: int, rows: int) -> None:
    """In width, with wide characters too, and in height with the cursor's line below."""
    lines = lines_of(view(*(line(name) for name in names)), columns, rows)

    assert len(lines) < rows
    assert all(cells(text) < columns for text in lines)


@pytest.mark.parametrize("rows", [3, 4, 5])
def test_the_display_fits_a_low_terminal(rows: int) -> None:
    """Or it scrolls, and is drawn again further down each time."""
    assert len(render_live(view(*[line()] * 9), 80, rows)) < rows


@given(st.text(max_size=60))
def test_no_control_character_reaches_the_terminal(name: str) -> None:
    """Whatever a job is called: no escape, no newline, no half of a character."""
    for text in lines_of(view(line(name), line(f"\x1b[2J{name}\r\n\x9b")), 200):
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


def test_a_frame_replaces_lines_and_clears_no_screen() -> None:
    """Up by as many lines as there were; each new line ends with what clears the rest of it."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        show.update(lambda: view(line()))
        first = pipe.read().decode()
        drawn = first.count("\n")
        show.print("above")
        second = pipe.read().decode()
        show.close()

        assert drawn
        assert first.count("\x1b[K\n") == drawn
        assert first.startswith(f"{BEGIN_FRAME}\r{WRAP_OFF}")
        assert first.endswith(f"\n\x1b[J{WRAP_ON}{END_FRAME}")
        assert second.startswith(f"{BEGIN_FRAME}\x1b[{drawn}F\x1b[Kabove\n{WRAP_OFF}")
        assert pipe.read().decode() == f"\x1b[{drawn}F" + "\x1b[K\n" * drawn + f"\x1b[{drawn}F"


def test_a_long_line_above_the_table_clears_what_it_wraps_onto() -> None:
    """A tab in it would leave parts of the table."""
    assert clear_for(b"short", 80, 0) == b""
    assert clear_for(b"short", 80, 5) == b"\x1b[K"
    assert clear_for(b"x" * 170, 80, 5).count(b"\x1b[B\x1b[K") == 2
    assert clear_for(b"x" * 9999, 80, 5).count(b"\x1b[B\x1b[K") == 5


def test_it_is_not_drawn_more_often_than_can_be_seen() -> None:
    """The view is not even made."""
    with a_pipe() as pipe:
        show = LiveShow(pipe.out)
        show.update(view)
        assert pipe.read()

        show.update(lambda: pytest.fail("was made"))

        assert pipe.read() == b""


def test_only_what_matters_stays_on_the_screen() -> None:
    """Starts and ends are in the table, failures in the summary, and what stops on Ctrl-C is no
    news; warnings stay. With all kinds, every event does.
    """
    interrupted = event("job_cancelled", Reason(Why.INTERRUPTED))
    started = event("run_started", Reason(Why.FITS, need_bytes=1, have_bytes=1))
    failed = event("job_failed", Reason(Why.EXITED, code=1))
    with a_pipe() as pipe:
        show, talker = LiveShow(pipe.out), LiveShow(pipe.out, None)
        for one in (started, failed, interrupted):
            show.event(one, "a")
        assert pipe.read() == b""
        show.update(view)
        assert b"last failed: a: exit status 1" in pipe.read()
        show.event(event("run_fallback", Reason(Why.STEP_DOWN, model="small", usual="big")), "a")
        assert b"model     a: " in pipe.read()
        talker.event(started, "a")
        assert b"start     a: " in pipe.read()


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
