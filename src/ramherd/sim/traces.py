"""Trace files, and the built-in traces where there is none."""

from ramherd.core.errors import UsageError
from ramherd.sim.course import Course, make_course
from ramherd.sim.profiles import parse_traces, synthetic

# As many as there are published runs.
SYNTHETIC = 105


def read_courses(traces: str | None, seed: int) -> list[Course]:
    if traces is None:
        return [make_course(profile) for profile in synthetic(seed, SYNTHETIC)]
    try:
        with open(traces, encoding="utf-8") as lines:
            courses = [make_course(profile) for profile in parse_traces(lines)]
    except OSError as error:
        raise UsageError(f"cannot read {traces}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{traces} is not UTF-8: {error.reason}") from None
    if not courses:
        raise UsageError(f"{traces} holds no trace")
    return courses
