"""The published traces if they are available, otherwise the built-in ones."""

import os
from functools import cache
from pathlib import Path

from ramherd.sim.course import Course, make_course
from ramherd.sim.profiles import parse_traces, synthetic

FOUND = Path(
    os.environ.get("RAMHERD_TRACES")
    or Path(__file__).parents[3] / "shared" / "traces" / "agents.jsonl"
)


@cache
def courses() -> tuple[Course, ...]:
    if not FOUND.is_file():
        print(f"{FOUND} is absent: built-in traces are used")
        return tuple(make_course(profile) for profile in synthetic(1, 105))
    with FOUND.open() as lines:
        return tuple(make_course(profile) for profile in parse_traces(lines))
