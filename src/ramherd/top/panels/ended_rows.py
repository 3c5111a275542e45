"""Jobs that ended in the last day: results, changes and costs."""

from ramherd.core.units import count
from ramherd.show.cost_text import render_cost
from ramherd.show.job_table import short_size
from ramherd.show.result_lines import is_agent, is_mergeable, render_changes, render_told
from ramherd.show.wait_text import render_details
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
    Column("STATE", 9),
    Column("TOOK", 7, is_right=True, rank=2),
    Column("PEAK", 6, is_right=True, rank=5),
    Column("COST", 7, is_right=True, rank=2),
    Column("CHANGES", 20, rank=4),
    Column("RESULT", rank=0, least=20),
    Column("HERD", 6, rank=6),
)
STATES = ("done", "failed", "cancelled")


def make_ended_table(reading: Reading, *, is_tree: bool = False) -> TableData:
    """The last to end first."""
    jobs = sorted(reading.ended, key=lambda job: -job["updated_s"])
    several = len({job["herd"] for job in jobs}) > 1 and not is_tree

    def make(job: Job) -> tuple[Cell, ...]:
        peak = job["peak_bytes"]
        return (
            number_cell(job), name_cell(job), state_cell(job), time_cell(job, reading.at_s),
            Cell(short_size(peak), Tone.DIM, peak) if peak else Cell(),
            Cell(render_cost(job), value=job["cost_usd"]), changes_cell(job),
            result_cell(job, reading.at_s), herd_cell(job) if several else Cell(),
        )  # fmt: skip

    more = sum(reading.counts.get(state, 0) for state in STATES) - len(jobs)
    text = f"and {count(more, 'more job')} (ramherd results)" if more > 0 and jobs else ""
    rows = make_job_rows(jobs, make, is_tree=is_tree)
    return TableData(COLUMNS, rows, empty="no job ended in the last day", more=text)


def changes_cell(job: Job) -> Cell:
    text = render_changes(job) if job["files_changed"] or job["branch"] else ""
    return make_cell(text, Tone.ACCENT if is_mergeable(job) else Tone.DIM, job["lines_added"])


def result_cell(job: Job, now_s: float) -> Cell:
    """The answer of an agent; of a command, its exit status."""
    has_text = is_agent(job) or job["state"] != "done"
    tone = Tone.BAD if job["state"] == "failed" else Tone.PLAIN
    return make_cell(render_told(job) if has_text else render_details(job, now_s), tone)
