"""Needs you: whatever does not go on, or not well, without the user; the most urgent first."""

from collections.abc import Iterator
from typing import NamedTuple

from ramherd.core.reasons import Why, reason_from_json, reason_from_text
from ramherd.core.units import count
from ramherd.decide.job_bases import BLOCKED
from ramherd.decide.usage_limits import explain_window
from ramherd.show.job_table import short_herd
from ramherd.show.reasons import render_clock, render_reason
from ramherd.show.result_lines import render_call, render_told
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.panels.job_cells import job_key
from ramherd.top.reading import Job, Reading

COLUMNS = (
    Column("WHAT", 10),
    Column("NO", 5, is_right=True, rank=4),
    Column("NAME", 22, rank=2),
    Column("SINCE", 12, rank=3),
    Column("WHY", rank=0),
    Column("KEYS", 24, rank=9),
)
# Pauses that the user wants, or that end by themselves.
NO_PROBLEM = (Why.PAUSED, Why.SERVICE_STOPS)
CALLS = 3


class Need(NamedTuple):
    """`keys` are the keys that solve it."""

    key: str
    what: str
    why: str
    keys: str = ""
    number: int | None = None
    name: str = ""
    at_s: float = 0.0
    tone: Tone = Tone.BAD


def make_needs_table(reading: Reading) -> TableData:
    rows = tuple(TableRow(need.key, make_cells(need, reading.at_s)) for need in find_needs(reading))
    return TableData(COLUMNS, rows, empty="nothing")


def make_cells(need: Need, now_s: float) -> tuple[Cell, ...]:
    number = Cell(str(need.number), Tone.DIM, need.number) if need.number is not None else Cell()
    since = render_clock(need.at_s, now_s) if need.at_s else ""
    return (
        Cell(need.what, need.tone, need.what), number, make_cell(need.name, Tone.STRONG),
        Cell(since, Tone.DIM, need.at_s or None), make_cell(need.why),
        Cell(need.keys, Tone.ACCENT),
    )  # fmt: skip


def find_needs(reading: Reading) -> list[Need]:
    """Groups in the order of their urgency; within a group, the newest first."""
    groups = (
        find_service_needs(reading), find_conflicts(reading), find_failed(reading),
        find_denied(reading), find_alerts(reading), find_limits(reading),
        find_interrupted(reading),
    )  # fmt: skip
    return [need for group in groups for need in sorted(group, key=lambda one: -one.at_s)]


def find_service_needs(reading: Reading) -> Iterator[Need]:
    if reading.service.problem:
        yield Need("service", "service", reading.service.problem)
    for problem in reading.problems:
        yield Need(f"problem:{problem}", "unread", problem, tone=Tone.WARN)
    for pause in reading.pauses:
        reason = reason_from_json(pause)
        if reason.why not in NO_PROBLEM:
            yield Need(f"pause:{reason.why}", "no starts", render_reason(reason))
    if any(job["reason"].get("why") == Why.NO_SERVICE for job in reading.waiting):
        sentence = "jobs of the service wait for it: ramherd up"
        yield Need("no-service", "service", sentence, tone=Tone.WARN)


def find_conflicts(reading: Reading) -> Iterator[Need]:
    for job in reading.waiting:
        if job["reason"].get("why") in BLOCKED:
            why = render_reason(reason_from_json(job["reason"]))
            yield need_of(job, "conflict", why, "enter show  r retry")


def find_failed(reading: Reading) -> Iterator[Need]:
    for job in reading.ended:
        if job["state"] == "failed":
            yield need_of(job, "failed", render_told(job), "l log  r retry")


def find_denied(reading: Reading) -> Iterator[Need]:
    """Of jobs that have ended: a running agent may still find another way."""
    for job in reading.ended:
        if denied := job["denied"]:
            calls = ", ".join(map(render_call, denied[:CALLS]))
            more = f" and {len(denied) - CALLS} more" if len(denied) > CALLS else ""
            why = f"{count(len(denied), 'tool call')} denied: {calls}{more}"
            yield need_of(job, "denied", why, "a allow  l log", Tone.WARN)


def find_alerts(reading: Reading) -> Iterator[Need]:
    """The last alert of each kind, of runs that have not ended since."""
    live = {job["id"]: job for job in reading.live}
    found: dict[tuple[str, str], Need] = {}
    for event in reading.events:
        job = live.get(event.job)
        if event.kind != "alert" or job is None or event.at_s < (job["started_s"] or 0.0):
            continue
        reason = reason_from_text(event.reason)
        what = "stalled" if reason.why is Why.STALLED else "memory"
        need = need_of(job, what, render_reason(reason), "l log  R recycle", Tone.WARN)
        found[event.job, what] = need._replace(at_s=event.at_s, key=f"{need.key}:{what}")
    yield from found.values()


def find_limits(reading: Reading) -> Iterator[Need]:
    for window in reading.windows:
        if window.until_s > reading.at_s:
            why = render_reason(explain_window(window, reading.at_s))
            yield Need(f"limit:{'/'.join(window.key)}", "limit", why, tone=Tone.WARN)


def find_interrupted(reading: Reading) -> Iterator[Need]:
    """Herds whose `ramherd run` died."""
    lost = {job["herd"]: job for job in (*reading.live, *reading.waiting) if job["owner_lost"]}
    for herd, job in lost.items():
        why = f"herd {short_herd(herd)} was interrupted (ramherd run --resume {herd})"
        yield Need(f"lost:{herd}", "lost", why, at_s=job["updated_s"])


def need_of(job: Job, what: str, why: str, keys: str, tone: Tone = Tone.BAD) -> Need:
    """`JOB_KEY` first, so that the keys of jobs work on the row."""
    key = f"{job_key(job)}:{what}"
    return Need(key, what, why, keys, job["number"], job["name"], job["updated_s"], tone)
