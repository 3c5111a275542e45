"""Runs: the memory of each, its last minute, its grant and growth, and what its agent does."""

from collections.abc import Sequence

from ramherd.core.units import format_duration
from ramherd.show.cost_text import render_cost
from ramherd.show.job_table import short_size
from ramherd.show.wait_text import render_details
from ramherd.top.cells import Cell, Column, TableData, Tone, make_cell
from ramherd.top.panels.job_cells import (
    herd_cell,
    make_job_rows,
    name_cell,
    number_cell,
    time_cell,
)
from ramherd.top.reading import Job, Reading

COLUMNS = (
    Column("NO", 5, is_right=True, rank=2),
    Column("NAME", 22),
    Column("MEMORY", 6, is_right=True),
    Column("LAST MIN", 8, rank=3),
    Column("GRANT", 6, is_right=True, rank=5),
    Column("GROWTH", 9, is_right=True, rank=6),
    Column("LIMIT IN", 8, is_right=True, rank=7),
    Column("TIME", 6, is_right=True),
    Column("COST", 7, is_right=True, rank=2),
    Column("DOING", rank=0),
    Column("HERD", 6, rank=8),
)
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_CELLS = 8
# A change of less than this share is not drawn.
STEADY = 0.1
# Growth below this in a minute is noise, and so is that of a few seconds.
LEAST_GROWTH_BYTES = 1 << 20
LEAST_SAMPLES = 20
NEAR_LIMIT, NEAR_GRANT = 0.9, 0.97


def make_run_table(reading: Reading, *, is_tree: bool = False) -> TableData:
    several = len({job["herd"] for job in reading.live}) > 1 and not is_tree

    def make(job: Job) -> tuple[Cell, ...]:
        samples = reading.samples.get(job["id"], ())
        return (
            number_cell(job), name_cell(job), memory_cell(job),
            Cell(render_sparks(samples), Tone.ACCENT),
            size_cell(job.get("grant_bytes")), growth_cell(job, samples), left_cell(job),
            time_cell(job, reading.at_s), cost_cell(job), doing_cell(job, reading.at_s),
            herd_cell(job) if several else Cell(),
        )  # fmt: skip

    rows = make_job_rows(reading.live, make, is_tree=is_tree)
    return TableData(COLUMNS, rows, empty="nothing runs (ramherd run, or ramherd submit)")


def memory_cell(job: Job) -> Cell:
    used, limit, grant = job.get("used_bytes"), job.get("limit_bytes"), job.get("grant_bytes")
    if used is None:
        return Cell("-", Tone.DIM)
    tone = Tone.PLAIN
    if grant and used >= NEAR_GRANT * grant:
        tone = Tone.WARN
    if limit and used >= NEAR_LIMIT * limit:
        tone = Tone.BAD
    return Cell(short_size(used), tone, used)


def size_cell(size: int | None, tone: Tone = Tone.DIM) -> Cell:
    return Cell(short_size(size), tone, size) if size else Cell()


def render_sparks(samples: Sequence[int]) -> str:
    """The highest memory in each part of the last minute, from the lowest to the highest of them.
    Steady memory is a flat line in the middle.
    """
    if not samples:
        return ""
    parts = min(len(samples), SPARK_CELLS)
    peaks = [
        max(samples[at * len(samples) // parts : (at + 1) * len(samples) // parts])
        for at in range(parts)
    ]
    least, most = min(peaks), max(peaks)
    if most - least < STEADY * most:
        return SPARKS[len(SPARKS) // 2] * parts
    span = most - least
    return "".join(SPARKS[round((len(SPARKS) - 1) * (peak - least) / span)] for peak in peaks)


def growth_per_s(job: Job, samples: Sequence[int]) -> float:
    """A leak that the service has measured between turns; otherwise the change in the samples,
    which are a second apart.
    """
    if leak := job.get("leak_bytes_per_s"):
        return float(leak)
    if len(samples) < LEAST_SAMPLES:
        return 0.0
    return (samples[-1] - samples[0]) / (len(samples) - 1)


def growth_cell(job: Job, samples: Sequence[int]) -> Cell:
    minute = 60 * growth_per_s(job, samples)
    if abs(minute) < LEAST_GROWTH_BYTES:
        return Cell()
    sign, tone = ("+", Tone.WARN if job.get("leak_bytes_per_s") else Tone.PLAIN)
    if minute < 0:
        sign, tone = "-", Tone.DIM
    return Cell(f"{sign}{short_size(abs(minute))}/min", tone, minute)


def left_cell(job: Job) -> Cell:
    """The time until a leak reaches the memory_limit of the job."""
    limit, leak, used = job.get("limit_bytes"), job.get("leak_bytes_per_s"), job.get("used_bytes")
    if not limit or not leak or used is None:
        return Cell()
    left_s = max(limit - used, 0) / leak
    return Cell(format_duration(left_s), Tone.BAD if left_s < 600 else Tone.WARN, left_s)


def cost_cell(job: Job) -> Cell:
    return Cell(render_cost(job), value=job.get("cost_usd"))


def doing_cell(job: Job, now_s: float) -> Cell:
    """The turn and the tool in use; the cost has its own column."""
    text = render_details({**job, "cost_usd": None}, now_s)
    is_stopped = job.get("held_s") is not None or job.get("wish") or job.get("owner_lost")
    return make_cell(text, Tone.WARN if is_stopped else Tone.PLAIN)
