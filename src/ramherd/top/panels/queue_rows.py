"""The queue: jobs that do not run yet, each with the reason why it waits."""

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import count
from ramherd.show.wait_text import render_paused, render_wait
from ramherd.top.cells import Cell, Column, TableData, Tone, make_cell
from ramherd.top.panels.job_cells import (
    herd_cell,
    make_job_rows,
    name_cell,
    number_cell,
    state_cell,
    time_cell,
)
from ramherd.top.reading import Job, Reading

COLUMNS = (
    Column("NO", 5, is_right=True, rank=3),
    Column("NAME", 22),
    Column("STATE", 8, rank=2),
    Column("WAITED", 7, is_right=True),
    Column("PRIO", 5, is_right=True, rank=5),
    Column("WHY IT WAITS", rank=0),
    Column("HERD", 6, rank=6),
)


def make_queue_table(reading: Reading, *, is_tree: bool = False) -> TableData:
    several = len({job["herd"] for job in reading.waiting}) > 1 and not is_tree

    def make(job: Job) -> tuple[Cell, ...]:
        priority = job["priority"]
        return (
            number_cell(job), name_cell(job), state_cell(job), time_cell(job, reading.at_s),
            Cell(str(priority) if priority else "", value=priority), wait_cell(job, reading.at_s),
            herd_cell(job) if several else Cell(),
        )  # fmt: skip

    rows = make_job_rows(reading.waiting, make, is_tree=is_tree)
    return TableData(COLUMNS, rows, empty="no job waits", more=render_more(reading))


def wait_cell(job: Job, now_s: float) -> Cell:
    if job.get("wish"):
        return Cell(f"{job['wish']} requested", Tone.WARN)
    text = render_wait(reason_from_json(job["reason"]), job.get("not_before_s"), now_s)
    return make_cell(text, Tone.WARN if job["paused_s"] is not None else Tone.PLAIN)


def render_more(reading: Reading) -> str:
    """Jobs beyond the list, and a pause of the whole service."""
    waiting = sum(reading.counts.get(state, 0) for state in ("queued", "waiting"))
    more = waiting - len(reading.waiting)
    lines = [f"and {count(more, 'more job')}"] if more > 0 and reading.waiting else []
    if reading.paused_s is not None:
        ago = render_paused(reading.paused_s, reading.at_s)
        lines.append(f"the service was {ago}: no job starts until U")
    return "; ".join(lines)
