"""One plain line for each event, and the summary at the end."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Event, Reason, Why
from ramherd.core.units import GIB, MIB
from ramherd.show.event_lines import (
    CHANGES,
    WORDS,
    LineShow,
    printable,
    render_event,
)
from ramherd.show.reasons import render_reason
from ramherd.show.summary import render_summary
from support.make import HERD
from unit.show.test_nonblocking_writer import a_pipe, alarm

FITS = Reason(Why.FITS, need_bytes=1, have_bytes=2)
FAILED = Reason(Why.EXITED, code=3)


def event(kind: str, reason: Reason = FAILED) -> Event:
    return Event(kind, reason, 1.0, HERD)


def result(name: str, state: str = "done", runs: int = 1, /, **reason: Any) -> dict[str, Any]:
    why = reason or {"why": "exited", "code": 0}
    return {"job": name, "state": state, "runs": runs, "reason": why}


def summary(*results: dict[str, Any], **changes: Any) -> dict[str, Any]:
    states = [one["state"] for one in results]
    return {
        "jobs": len(results), "done": states.count("done"), "failed": states.count("failed"),
        "cancelled": states.count("cancelled"), "wall_s": 75.0, "peak_bytes": GIB,
        "budget_bytes": 2 * GIB, "pen": "cgroup1", "oom_kills": 0, "limit_kills": 0,
        "preempted": 1, "recycled": 0, "leftovers_ended": 4, "residue_bytes": 0,
        "results": list(results),
        "supervisor": {
            "rss_peak_bytes": 20 * MIB, "keeper_rss_peak_bytes": 10 * MIB, "cpu_s": 1.5
        }, **changes,
    }  # fmt: skip


def test_a_line_says_what_who_and_why() -> None:
    """With the time in front; kinds that nobody asked for have no line."""
    with a_pipe() as pipe:
        show = LineShow(pipe.out)
        show.event(event("job_failed"), "build")
        show.event(event("run_ended"), "build")

        text = pipe.read().decode()
    assert re.fullmatch(r"\d\d:\d\d:\d\d failed    build: exit status 3\n", text)


def shown(*events: tuple[str, Reason, str], has_summary: bool = True) -> list[str]:
    """The lines of a pipe for these events (kind, reason, job), without their times."""
    with a_pipe() as pipe:
        show = LineShow(pipe.out, CHANGES, has_summary=has_summary)
        for at, (kind, reason, job) in enumerate(events):
            show.event(Event(kind, reason, float(at), HERD, job), job)
        return [line[9:] for line in pipe.read().decode().splitlines()]


def test_one_line_for_each_change_of_a_state() -> None:
    """A wait is no change while others run; a stop is one once the job is back in the queue."""
    waits = Reason(Why.SOMEBODY_WAITS, waiting=1)
    room = Reason(Why.PATIENCE_OVER, waiter="a", waited_s=3.0)
    lines = shown(
        ("run_started", FITS, "a"), ("run_started", FITS, "b"), ("start_waits", waits, "c"),
        ("run_stopping", room, "b"), ("run_killed", Reason(Why.GRACE_OVER, grace_s=0.0), "b"),
        ("run_ended", room, "b"), ("job_queued", room, "b"), ("start_waits", waits, "b"),
        ("leftovers_ended", Reason(Why.LEFTOVERS, processes=2), "a"), ("run_ended", FAILED, "a"),
        ("job_failed", FAILED, "a"),
    )  # fmt: skip

    assert [line.partition(":")[0] for line in lines] == [
        "start     a", "start     b", "again     b", "failed    a after 10s",
    ]  # fmt: skip


def test_a_line_names_its_action_once() -> None:
    """The sentence of the reason does too, for lists that have no other word for it."""
    held = Reason(Why.AT_GRANT, grant_bytes=MIB, free_bytes=0)

    for kind, reason, action in (("run_started", FITS, "started"), ("run_held", held, "held")):
        assert render_reason(reason).startswith(f"{action}: ")
        (line,) = shown((kind, reason, "a"))
        assert line == f"{WORDS[kind]:<9} a: {render_reason(reason).removeprefix(f'{action}: ')}"


def test_the_reason_of_a_failure_is_in_the_summary_or_in_the_line() -> None:
    """In one of them: `--json` prints no summary that people read."""
    ends = ("job_failed", FAILED, "a"), ("job_done", Reason(Why.EXITED, code=0), "b")

    assert shown(*ends) == ["failed    a", "done      b"]
    assert shown(*ends, has_summary=False)[0] == "failed    a: exit status 3"


def test_a_pipe_says_once_why_nothing_runs() -> None:
    """For each job that is first in line and each cause; not for other numbers of the same."""
    waits = [Reason(Why.NO_ROOM_MACHINE, need_bytes=GIB, have_bytes=n * MIB) for n in range(3)]
    lines = shown(*(("start_waits", one, "a") for one in waits), ("start_waits", waits[0], "b"))

    assert lines == [f"wait      {job}: {render_reason(waits[0])}" for job in "ab"]


def test_ctrl_c_has_one_line() -> None:
    """Not one for each run that ends; a later line for each job that is cancelled."""
    asked = Reason(Why.INTERRUPTED)
    lines = shown(*(("run_stopping", asked, job) for job in "abc"), ("job_cancelled", asked, "a"))

    assert [line.partition(":")[0] for line in lines] == ["stop      all runs", "cancel    a"]


@pytest.mark.parametrize(("grace_s", "is_shown"), [(0.0, False), (0.02, False), (10.0, True)])
def test_a_kill_without_a_grace_period_is_no_news(grace_s: float, is_shown: bool) -> None:
    """A run that makes room at once is killed as soon as it is stopped."""
    text = render_event(event("run_killed", Reason(Why.GRACE_OVER, grace_s=grace_s)), "a")

    assert (text is not None) == is_shown


def test_a_refusal_of_the_api_has_one_line() -> None:
    """What follows from it for each job is not shown, unless the job ends."""
    refused = Reason(Why.NO_ACCESS, agent="claude", what="401")
    with a_pipe() as pipe:
        show = LineShow(pipe.out)
        for kind in ("usage_limit", "run_stopping", "job_queued", "start_waits", "job_cancelled"):
            show.event(event(kind, refused), "build")
        show.event(event("job_queued"), "other")

        lines = pipe.read().decode().splitlines()
    assert [line.split()[1] for line in lines] == ["limit", "cancel", "again"]


@pytest.mark.parametrize("kind", WORDS)
def test_every_kind_with_a_word_has_a_line(kind: str) -> None:
    """One line, and the reason is the one of the decision."""
    text = render_event(event(kind), "a")

    assert text is not None
    assert text.endswith(" a: exit status 3")


@given(st.text())
def test_a_name_cannot_break_its_line(name: str) -> None:
    """No newline and no control sequence, whatever it is."""
    text = render_event(event("job_failed"), name)

    assert text is not None
    assert text.isprintable()


def test_a_reason_cannot_break_its_line() -> None:
    """The keeper names the program that it could not start, and that may be called anything."""
    reason = Reason(Why.NOT_STARTED, errno=2, what="cannot start ./\x1b[2J\nx: No such file")

    text = render_event(event("job_failed", reason), "a")

    assert text is not None
    assert text.isprintable()


def test_characters_that_are_none_become_question_marks() -> None:
    """Escapes, newlines, right-to-left marks, halves of surrogate pairs; letters stay."""
    assert printable("a\x1b[2Jé日\n\u202e\udcff") == "a?[2Jé日???"


def test_a_reader_that_went_away_does_not_end_the_herd() -> None:
    """`ramherd run jobs.toml | head -1`."""
    with a_pipe() as pipe:
        show = LineShow(pipe.out)
        pipe.hang_up()

        show.event(event("job_failed"), "a")
        show.close()


def test_a_reader_that_does_not_read_does_not_stop_the_herd() -> None:
    """`ramherd run | less`, Ctrl-S: limits, timeouts and signals are looked after all the same."""
    with a_pipe() as pipe:
        show = LineShow(pipe.out)
        with alarm(1.0):
            for _ in range(3000):
                show.event(event("job_failed"), "a")
                show.update(lambda: pytest.fail("was made"))


def test_what_was_not_read_in_time_comes_later() -> None:
    """With the next look at the herd, without another event; and the rest at the close."""
    line = "x" * 99
    with a_pipe() as pipe:
        show = LineShow(pipe.out)
        for _ in range(1000):
            show.print(line)
        found = pipe.read()
        assert len(found) < 100_000
        show.update(lambda: pytest.fail("was made"))
        found += pipe.read()
        show.close()
        found += pipe.read()

    assert found.decode() == f"{line}\n" * 1000


def test_a_terminal_that_cannot_draw_a_letter_does_not_end_the_herd() -> None:
    """An old locale: the letter is lost, the line and the run are not."""
    with a_pipe("ascii") as pipe:
        LineShow(pipe.out).print("a\u65e5\u672cb")

        assert pipe.read() == b"a??b\n"


def test_the_summary_of_a_herd_that_went_well() -> None:
    """What was done, what it took, and where the output is."""
    assert render_summary(summary(result("a"), result("b")), missing_bytes=GIB) == [
        "2 of 2 jobs done in 1m15s; peak 1 GiB of 2 GiB",
        "output of a job: ramherd logs a",
    ]


def test_kernel_kills_are_in_the_summary() -> None:
    """Those at a limit and those without one; nothing where there were none."""
    lines = render_summary(summary(oom_kills=1, limit_kills=2), missing_bytes=0)

    assert lines[1:] == [
        "2 processes killed at the memory_limit of a job",
        "1 process killed because memory ran out",
    ]


def test_what_ramherd_itself_took_is_for_verbose() -> None:
    """With what it did about memory, and what is missing of the machine's since then."""
    lines = render_summary(summary(), missing_bytes=64 * MIB, is_verbose=True)

    assert lines[1:] == [
        "1 preempted, 0 recycled, 4 leftovers ended, 0 limit kills, 0 OOM kills, 0 level changes",
        "pen cgroup1; supervisor 20 MiB and 1.5s of CPU, keeper 10 MiB",
        "the machine has 64 MiB less available than before the herd",
    ]
    assert len(render_summary(summary(), missing_bytes=64 * MIB - 1, is_verbose=True)) == 3


def test_the_summary_tells_how_far_a_ramp_came() -> None:
    """And what came up then, as a sentence; nothing where there was none."""

    def line(clean: int, trouble: dict[str, Any] | None) -> str:
        ramp = {"reached": clean + 5, "clean": clean, "trouble": trouble}
        return render_summary(summary(ramp=ramp), missing_bytes=0)[1]

    assert line(0, None) == "ramp: the herd ended during the first step"
    assert line(10, None) == "ramp: 10 at a time ran without trouble"
    killed = {"why": "oom_kill", "peak_bytes": MIB}
    trouble = "killed by the kernel: out of memory (peak 1 MiB)"
    assert line(0, killed) == f"ramp: first trouble: {trouble}"
    assert line(10, killed).endswith(f" without trouble; first trouble with more: {trouble}")


def test_the_summary_names_what_failed_and_where_to_look() -> None:
    """Each with its own reason; twenty of them, the rest as a number."""
    bad = [result(f"j{n}", "failed", why="exited", code=n) for n in range(1, 23)]
    cancelled = result(
        "z", "cancelled", 0, why="dependency_failed", dependency="j1", state="failed"
    )

    lines = render_summary(summary(result("ok"), *bad, cancelled), missing_bytes=0)

    assert lines[0] == "failed    j1: exit status 1"
    assert lines[19:22] == [
        "failed    j20: exit status 20",
        "          and 2 more: ramherd results",
        "          see: ramherd logs j1",
    ]
    assert lines[22].startswith("1 of 24 jobs done (22 failed, 1 cancelled) in ")


def test_a_job_that_never_ran_has_no_log_to_look_at() -> None:
    """It was too big: there is nothing that it printed."""
    bad = result("j", "failed", 0, why="too_big", need_bytes=2 * GIB, budget_bytes=GIB)

    first, second, *_rest = render_summary(summary(bad), missing_bytes=0)

    assert first == "failed    j: needs 2 GiB, more than the whole budget of 1 GiB"
    assert second.startswith("0 of 1 job done")


def test_what_is_left_behind_is_said() -> None:
    """Files in memory, when they are large; with --verbose, all of them."""

    def lines(residue_bytes: int, *, is_verbose: bool) -> list[str]:
        return render_summary(
            summary(residue_bytes=residue_bytes), missing_bytes=0, is_verbose=is_verbose
        )[1:2]

    assert lines(64 * MIB - 1, is_verbose=False) == []
    said = ["jobs left 64 MiB in tmpfs (see /dev/shm and /tmp)"]
    assert lines(64 * MIB, is_verbose=False) == said
    assert lines(1, is_verbose=True) == ["jobs left 1 B in tmpfs (see /dev/shm and /tmp)"]


def test_a_name_cannot_break_the_summary() -> None:
    """Also where it is quoted for a command."""
    bad = result("\x1b[2J\n", "failed", why="exited", code=1)

    assert all(text.isprintable() for text in render_summary(summary(bad), missing_bytes=0))


def test_a_reason_cannot_break_the_summary() -> None:
    """What could not be started may be called anything."""
    bad = result("a", "failed", why="not_started", errno=2, what="cannot start \x1b[2J\n")

    assert all(text.isprintable() for text in render_summary(summary(bad), missing_bytes=0))
