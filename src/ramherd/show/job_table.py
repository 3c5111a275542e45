"""The table of `ramherd jobs`: one line for each job, no wider than the screen."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ramherd.core.reasons import JobState
from ramherd.core.units import GIB, KIB, MIB, format_duration
from ramherd.show.event_lines import printable
from ramherd.show.live_display import cut
from ramherd.show.result_lines import state_of
from ramherd.show.wait_text import render_details

Job = Mapping[str, Any]

# Running jobs come first, then jobs that will run, then jobs that have ended.
ORDER = ("running", "held", "queued", "waiting", "lost", "failed", "cancelled", "done")
# The id of a herd is shown by its last characters: the first ones are a time.
HERD_CHARACTERS = 6
SHORTEST_NAME, LONGEST_NAME = 12, 24
GAP = "  "
HEADER = ("NO", "NAME", "STATE", "MEMORY", "TIME", "DETAILS", "HERD")
RIGHT = (0, 3, 4)
NAME, DETAILS = 1, 5


def render_table(jobs: Sequence[Job], columns: int, now_s: float) -> list[str]:
    """With a header. The herd column is left out if all jobs are of one herd."""
    herds = {job["herd"] for job in jobs}
    last = len(HEADER) if len(herds) > 1 else len(HEADER) - 1
    rows = [HEADER[:last], *(make_row(job, now_s)[:last] for job in in_order(jobs))]
    widths = [max(len(row[at]) for row in rows) for at in range(last)]
    fit_columns(widths, columns)
    return [render_row(row, widths, columns) for row in rows]


def in_order(jobs: Iterable[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (ORDER.index(state_of(job)), job.get("number") or 0))


def make_row(job: Job, now_s: float) -> tuple[str, ...]:
    number = job.get("number")
    row = (
        "-" if number is None else str(number), job["name"], state_of(job), render_memory(job),
        render_time(job, now_s), " ".join(render_details(job, now_s).split()),
        short_herd(job["herd"]),
    )  # fmt: skip
    return tuple(map(printable, row))


def short_herd(herd: str) -> str:
    return herd[-HERD_CHARACTERS:]


def fit_columns(widths: list[int], columns: int) -> None:
    """Shrinks names first, then details, then the other columns."""
    widths[NAME] = min(widths[NAME], LONGEST_NAME)
    for at, least in ((NAME, SHORTEST_NAME), (DETAILS, len(HEADER[DETAILS]))):
        over = sum(widths) + len(GAP) * (len(widths) - 1) - columns
        widths[at] = max(widths[at] - max(over, 0), min(least, widths[at]))


def render_row(row: Sequence[str], widths: Sequence[int], columns: int) -> str:
    cells = [
        shorten(text, width).rjust(width) if at in RIGHT else shorten(text, width).ljust(width)
        for at, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return cut(GAP.join(cells).rstrip(), columns)


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)].rstrip() + "..."[:width]


def render_memory(job: Job) -> str:
    """`340M/1.2G`: the used and the granted memory of a running job."""
    used = job.get("used_bytes")
    if used is None:
        return ""
    granted = job.get("grant_bytes")
    return f"{short_size(used)}/{short_size(granted)}" if granted else short_size(used)


def short_size(size: float) -> str:
    """`45M`, `1.2G`: K, M and G are KiB, MiB and GiB, as in the settings."""
    if size < MIB:
        return f"{size / KIB:.0f}K"
    return f"{size / MIB:.0f}M" if size < 1000 * MIB else f"{size / GIB:.1f}G"


def render_time(job: Job, now_s: float) -> str:
    """The duration of the run, or the time in the queue."""
    started_s, ended_s = job.get("started_s"), job.get("ended_s")
    if job["state"] in (JobState.QUEUED, JobState.WAITING):
        started_s, ended_s = job["updated_s"], None
    if started_s is None:
        return ""
    took_s = max((now_s if ended_s is None else ended_s) - started_s, 0.0)
    return format_duration(took_s if took_s < 10 else round(took_s))


def render_counts(jobs: Iterable[Job]) -> str:
    """`2 running, 3 queued`."""
    counts = Counter(map(state_of, jobs))
    return ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state])
