"""The routing table: each path and method, its parameters, and the function that answers.

Routing and parameter checks use the table, and openapi.py describes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ramherd.api.answers import JSON, METRICS, Answers
from ramherd.api.parameters import Parameter, number, switch
from ramherd.core.model import JobState
from ramherd.store.listing import LAST_ID

MOST_ROWS, MOST_POINTS = 10_000, 2000
OCTETS = "application/octet-stream"
EVENT_STREAM = "text/event-stream"


class Work(Enum):
    """Where a request is answered."""

    LOOP = auto()  # at once, without the store
    READ = auto()  # in a thread that reads
    WRITE = auto()  # in the thread that writes; then the service is woken
    SUBMIT = auto()  # in the thread that writes, or a process
    LOG = auto()  # a stream
    EVENTS = auto()  # a stream for clients that accept one, else a page


@dataclass(frozen=True, slots=True)
class Operation:
    """`gives` is the name of a schema in response_shapes.py, `body` that of the request."""

    method: str
    path: str
    summary: str
    gives: str
    work: Work = Work.READ
    answer: Callable[..., Any] | None = None
    query: tuple[Parameter, ...] = ()
    status: int = 200
    media_type: str = JSON
    body: str = ""
    needs_body: bool = True


LIMIT = number("limit", 1000, MOST_ROWS)
HERD, JOB = Parameter("herd"), Parameter("job")
STATE = Parameter("state", words=tuple(JobState))
OUT_OR_ERR = Parameter("stream", "out", words=("out", "err"))
AFTER_JOB, BEFORE_HERD = Parameter("after", ""), Parameter("before", LAST_ID)

OPERATIONS = (
    Operation("GET", "/v1/version", "version", "Version", Work.LOOP, Answers.version),
    Operation("GET", "/v1/openapi.json", "describe", "Object", Work.LOOP, Answers.describe),
    Operation(
        "GET", "/v1/herds", "list herds", "Herds", Work.READ, Answers.herds,
        (BEFORE_HERD, LIMIT),
    ),
    Operation(
        "POST", "/v1/herds", "submit", "Submitted", Work.SUBMIT, status=201, body="NewHerd"
    ),
    Operation("GET", "/v1/herds/{herd}", "show herd", "Herd", Work.READ, Answers.herd),
    Operation(
        "POST", "/v1/herds/{herd}/cancel", "cancel herd", "Submitted", Work.WRITE,
        Answers.cancel_herd, (switch("interrupt"),), status=202,
    ),
    Operation(
        "POST", "/v1/herds/{herd}/resume", "resume herd", "Submitted", Work.WRITE,
        Answers.resume_herd, status=202, body="Resume", needs_body=False,
    ),
    Operation(
        "GET", "/v1/jobs", "list jobs", "Jobs", Work.READ, Answers.jobs,
        (HERD, STATE, AFTER_JOB, switch("runs"), LIMIT),
    ),
    Operation("GET", "/v1/jobs/{job}", "show job", "Job", Work.READ, Answers.job),
    Operation(
        "GET", "/v1/jobs/{job}/logs", "logs", "Text", Work.LOG,
        query=(OUT_OR_ERR, switch("follow"), number("from")), media_type=OCTETS,
    ),
    Operation(
        "POST", "/v1/jobs/{job}/cancel", "cancel", "Wish", Work.WRITE, Answers.cancel, status=202
    ),
    Operation(
        "POST", "/v1/jobs/{job}/recycle", "recycle", "Wish", Work.WRITE, Answers.recycle,
        status=202,
    ),
    Operation(
        "POST", "/v1/jobs/{job}/retry", "retry", "Retried", Work.WRITE, Answers.retry, status=202,
        body="Retry", needs_body=False,
    ),
    Operation(
        "POST", "/v1/jobs/{job}/pause", "pause job", "PausedJob", Work.WRITE, Answers.pause_job
    ),
    Operation(
        "POST", "/v1/jobs/{job}/resume", "resume job", "PausedJob", Work.WRITE, Answers.resume_job
    ),
    Operation(
        "POST", "/v1/jobs/{job}/edit", "edit job", "EditedJob", Work.WRITE, Answers.edit_job,
        body="Edit",
    ),
    Operation("POST", "/v1/pause", "pause", "Paused", Work.WRITE, Answers.pause),
    Operation("POST", "/v1/resume", "resume", "Paused", Work.WRITE, Answers.resume),
    Operation(
        "GET", "/v1/events", "events", "Events", Work.EVENTS, Answers.events,
        (number("after"), HERD, JOB, LIMIT),
    ),
    Operation(
        "GET", "/v1/samples", "memory over time", "Samples", Work.READ, Answers.samples,
        (number("since", None), number("until", None), number("points", 600, MOST_POINTS)),
    ),
    Operation("GET", "/v1/snapshot", "snapshot", "Snapshot", Work.READ, Answers.snapshot),
    Operation(
        "GET", "/metrics", "metrics", "Text", Work.READ, Answers.metrics, media_type=METRICS
    ),
)  # fmt: skip
