"""Other schedulers on the same traces: a fixed number, a reservation each, a mark of free memory.

None of them limits a run or resumes it. When all runs together exceed the limit within a second,
the kernel kills the largest, and its work is done again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramherd.core.errors import UsageError
from ramherd.core.units import parse_size
from ramherd.sim.course import Course
from ramherd.sim.result import SimCounters


@dataclass(slots=True)
class Going:
    job: int
    course: Course
    position: int = -1

    @property
    def used_bytes(self) -> int:
        return self.course.bytes[self.position] if self.position >= 0 else 0


# How many to start, and how many of the youngest to kill, given the runs and the free bytes.
Starts = Callable[[Sequence[Going], int], int]
Kills = Callable[[Sequence[Going], int], int]


@dataclass(frozen=True, slots=True)
class Peer:
    starts: Starts
    kills: Kills = lambda _going, _free: 0


def fixed(number: int) -> Peer:
    return Peer(lambda going, _free: number - len(going))


def memfree(size_bytes: int) -> Peer:
    """GNU parallel --memfree: one more run a second while that much is free; the youngest is killed
    when less than half of it is free.
    """
    return Peer(
        starts=lambda _going, free: int(free > size_bytes),
        kills=lambda going, free: int(free < size_bytes / 2 and len(going) > 1),
    )


def parse_peer(text: str, budget_bytes: int) -> Peer:
    """`fixed:8`, `reserve:512MB`, `memfree:500MB`."""
    kind, _, value = text.partition(":")
    if kind == "fixed" and value.isdecimal() and int(value) > 0:
        return fixed(int(value))
    if kind == "reserve" and value:
        return fixed(max(budget_bytes // parse_size(value), 1))
    if kind == "memfree" and value:
        return memfree(parse_size(value))
    raise UsageError(f"no policy {text!r}", hint="grants, fixed:8, reserve:512MB or memfree:500MB")


def run_peer(
    peer: Peer,
    courses: Sequence[Course],
    budget_bytes: int,
    *,
    picture: bool = False,
    most_kills: float = float("inf"),
) -> SimCounters:
    """Ended early after `most_kills`, or when it takes longer than one job after another: then its
    runs are killed again and again, without progress.
    """
    longest_s = sum(course.seconds + 1 for course in courses)
    tally = SimCounters(picture=[] if picture else None)
    queue, going = deque(range(len(courses))), list[Going]()
    fitting = [course.peak_bytes <= budget_bytes for course in courses]
    while (queue or going) and tally.makespan_s <= longest_s and tally.oom_kills <= most_kills:
        free = budget_bytes - sum(one.used_bytes for one in going)
        for _ in range(peer.kills(going, free)):
            tally.preempted += 1
            put_back(going.pop(), queue, tally)
        for _ in range(min(peer.starts(going, free), len(queue))):
            job = queue.popleft()
            going.append(Going(job, courses[job]))
        advance(going, tally)
        kill_largest(going, queue, budget_bytes, fitting, tally)
        tally.see({str(one.job): one.used_bytes for one in going})
        tally.makespan_s += 1
    return tally


def advance(going: list[Going], tally: SimCounters) -> None:
    """One second; finished runs leave."""
    for one in going:
        one.position += 1
    ended = [one for one in going if one.position >= one.course.seconds]
    for one in ended:
        going.remove(one)
        tally.done += 1
        tally.work_s += one.course.seconds


def kill_largest(
    going: list[Going], queue: deque[int], limit: int, fitting: Sequence[bool], tally: SimCounters
) -> None:
    total = sum(one.used_bytes for one in going)
    while total > limit:
        largest = max(going, key=lambda one: one.used_bytes)
        total -= largest.used_bytes
        going.remove(largest)
        tally.oom_kills += 1
        if fitting[largest.job]:
            put_back(largest, queue, tally)
        else:
            tally.failed += 1


def put_back(one: Going, queue: deque[int], tally: SimCounters) -> None:
    """To the end of the queue, where it meets other neighbours; it starts from the beginning."""
    tally.redone_s += max(one.position, 0)
    queue.append(one.job)
