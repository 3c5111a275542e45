"""Cells and keys of jobs that several panels have."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from ramherd.show.job_table import render_time, short_herd
from ramherd.show.result_lines import state_of
from ramherd.top.cells import Cell, TableRow, Tone, make_cell
from ramherd.top.reading import Job

STATE_TONES = {
    "running": Tone.GOOD, "held": Tone.WARN, "queued": Tone.PLAIN, "waiting": Tone.DIM,
    "done": Tone.GOOD, "failed": Tone.BAD, "cancelled": Tone.WARN, "lost": Tone.BAD,
}  # fmt: skip
JOB_KEY = "job:"


def job_key(job: Job) -> str:
    return f"{JOB_KEY}{job['id']}"


def number_cell(job: Job) -> Cell:
    number = job.get("number")
    return Cell("-", Tone.DIM) if number is None else Cell(str(number), Tone.DIM, number)


def name_cell(job: Job) -> Cell:
    return make_cell(job["name"], Tone.STRONG)


def state_cell(job: Job) -> Cell:
    state = state_of(job)
    return Cell(state, STATE_TONES[state], state)


def time_cell(job: Job, now_s: float) -> Cell:
    """The time of the run, or in the queue."""
    text = render_time(job, now_s)
    began_s = job["started_s"] if job["started_s"] is not None else job["updated_s"]
    ended_s = job["ended_s"] if job["ended_s"] is not None else now_s
    return Cell(text, value=ended_s - began_s if text else None)


def herd_cell(job: Job) -> Cell:
    return make_cell(short_herd(job["herd"]), Tone.DIM)


def make_job_rows(
    jobs: Sequence[Job], make: Callable[[Job], tuple[Cell, ...]], *, is_tree: bool
) -> tuple[TableRow, ...]:
    """As a tree: each herd, and its jobs below it."""
    if not is_tree:
        return tuple(TableRow(job_key(job), make(job)) for job in jobs)
    rows: list[TableRow] = []
    for herd in dict.fromkeys(map(itemgetter("herd"), jobs)):
        own = [job for job in jobs if job["herd"] == herd]
        rows.append(TableRow(f"herd:{herd}", head_cells(herd, len(own), len(make(own[0])))))
        rows += [TableRow(job_key(job), indent(make(job)), depth=1) for job in own]
    return tuple(rows)


def head_cells(herd: str, jobs: int, columns: int) -> tuple[Cell, ...]:
    title = (Cell(""), Cell(f"herd {short_herd(herd)} ({jobs})", Tone.ACCENT))
    return (*title, *[Cell("")] * (columns - len(title)))


def indent(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    number, name, *rest = cells
    return number, name._replace(text=f"  {name.text}"), *rest
