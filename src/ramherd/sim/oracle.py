"""A scheduler that knows every trace in advance: the reference for the others.

Strict FIFO in file order: each job starts at the earliest second at which its whole trace fits, and
never before the job in front of it. It holds no run and repeats no work.
"""

from collections.abc import Sequence

from ramherd.sim.course import Course


def oracle_starts(courses: Sequence[Course], budget_bytes: int) -> list[int | None]:
    """The second at which each job starts; None for a job that never fits."""
    load: list[int] = []
    checks: dict[int, list[tuple[int, int]]] = {}
    starts: list[int | None] = []
    at = 0
    for course in courses:
        if course.peak_bytes > budget_bytes:
            starts.append(None)
            continue
        # The highest seconds first: they are the ones that do not fit.
        order = checks.setdefault(
            id(course), sorted(enumerate(course.bytes), key=lambda pair: -pair[1])
        )
        load.extend([0] * (at + course.seconds - len(load)))
        while not fits(order, load, at, budget_bytes):
            at += 1
            load.extend([0] * (at + course.seconds - len(load)))
        for second, size in enumerate(course.bytes):
            load[at + second] += size
        starts.append(at)
    return starts


def fits(order: Sequence[tuple[int, int]], load: Sequence[int], at: int, budget_bytes: int) -> bool:
    return all(load[at + second] + size <= budget_bytes for second, size in order)


def oracle_makespan_s(courses: Sequence[Course], budget_bytes: int) -> int:
    starts = oracle_starts(courses, budget_bytes)
    return max(
        (at + course.seconds for at, course in zip(starts, courses, strict=True) if at is not None),
        default=0,
    )


def passing_makespan_s(courses: Sequence[Course], budget_bytes: int) -> int:
    """A harder reference: each job starts at the earliest second at which it fits, even before the
    jobs in front of it.
    """
    load: list[int] = []
    for course in courses:
        if course.peak_bytes > budget_bytes:
            continue
        order = sorted(enumerate(course.bytes), key=lambda pair: -pair[1])
        at = 0
        load.extend([0] * (course.seconds - len(load)))
        while not fits(order, load, at, budget_bytes):
            at += 1
            load.extend([0] * (at + course.seconds - len(load)))
        for second, size in enumerate(course.bytes):
            load[at + second] += size
    return len(load)
