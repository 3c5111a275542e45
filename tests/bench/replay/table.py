"""Outcomes as tables of Markdown."""

from collections.abc import Iterator, Sequence

from bench.replay.outcome import Outcome

Row = Sequence[str]

HEAD = (
    "tool", "done", "OOM kills", "stopped and begun again", "work redone", "makespan s",
    "of the oracle", "peak MB", "processes left", "its own MB", "its own CPU s",
)  # fmt: skip
SHORT_HEAD = ("", "agents done", "OOM kills", "work redone", "time", "processes left")


def render_table(rows: Sequence[Row]) -> Iterator[str]:
    head, *body = rows
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield "| " + " | ".join(row) + " |"


def full_rows(outcomes: Sequence[Outcome]) -> list[Row]:
    return [HEAD, *(full_row(outcome) for outcome in outcomes)]


def full_row(outcome: Outcome) -> Row:
    work = outcome.work
    return (
        outcome.tool,
        f"{work.done} of {work.jobs}",
        str(outcome.oom_kills),
        str(outcome.stopped),
        f"{work.redone_share:.1%}" if work.done else "",
        makespan(outcome),
        "" if outcome.was_stopped else f"{outcome.oracle_share:.2f}",
        f"{outcome.peak_bytes / 1e6:.0f}",
        "" if outcome.was_stopped else str(outcome.left),
        f"{outcome.rss_bytes / 1e6:.1f}",
        f"{outcome.cpu_s:.1f}",
    )


def makespan(outcome: Outcome) -> str:
    seconds = f"{outcome.makespan_s:.0f}"
    return f"stopped after {seconds}" if outcome.was_stopped else seconds


def short_rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """For those who want to know only which to take: times beside the first."""
    first_s = outcomes[0].makespan_s
    return [SHORT_HEAD, *(short_row(outcome, first_s) for outcome in outcomes)]


def short_row(outcome: Outcome, first_s: float) -> Row:
    work, times = outcome.work, f"{outcome.makespan_s / first_s:.2f}x"
    return (
        outcome.tool,
        f"{work.done} of {work.jobs}",
        str(outcome.oom_kills),
        f"{work.redone_share:.1%}" if work.done else "",
        f"stopped at {times}" if outcome.was_stopped else times,
        "" if outcome.was_stopped else str(outcome.left),
    )
