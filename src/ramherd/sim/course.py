"""A profile second by second, and the cost of stopping in the middle of it; courses come from trace
files, or are built in.
"""

import math
from dataclasses import dataclass

from ramherd.core.errors import UsageError
from ramherd.sim.profiles import Profile, parse_traces, split_bursts, synthetic

# A resumed agent starts again before it continues: the programs alone take 0.3 to 2.8 s; the first
# 5 s of a trace also include reading the session.
RAMP_S = 5
# The least work that a resume repeats, even when no tool call was open.
REDO_S = 10
# The number of built-in traces, the same as the number of published runs.
SYNTHETIC = 105


@dataclass(frozen=True, slots=True)
class Course:
    """`bytes[t]` is the highest memory within second `t`. `calls[t]` is the second in which the
    tool call that is open at `t` began, or `t` itself. With a `step_s` of 5, `t` counts steps of
    five seconds: the planner simulates in coarse steps.
    """

    name: str
    bytes: tuple[int, ...]
    calls: tuple[int, ...]
    step_s: int = 1

    @property
    def seconds(self) -> int:
        return len(self.bytes)

    @property
    def peak_bytes(self) -> int:
        return max(self.bytes)

    @property
    def ramp(self) -> int:
        """The steps that a resumed run needs to start again."""
        return math.ceil(RAMP_S / self.step_s)

    def resume_at(self, position: int) -> int:
        """Where a run stopped at `position` resumes: before the open call, at least 10 s back."""
        if position <= 0:
            return 0
        opened = self.calls[min(position, len(self.calls) - 1)]
        return max(min(opened, position - math.ceil(REDO_S / self.step_s)), 0)


def make_course(profile: Profile) -> Course:
    seconds = max(math.ceil(profile.duration_s), 1)
    sizes = by_second(profile, seconds)
    bursts = by_second(split_bursts(profile)[1], seconds)
    calls: list[int] = []
    for second, burst in enumerate(bursts):
        open_since = calls[-1] if calls and burst and bursts[second - 1] else second
        calls.append(open_since)
    return Course(profile.name, tuple(sizes), tuple(calls))


def by_second(profile: Profile, seconds: int) -> list[int]:
    """The highest value within each second; a sample holds until the next."""
    sizes = [0] * seconds
    for index, (at_s, size) in enumerate(zip(profile.t_s, profile.bytes, strict=True)):
        is_last = index + 1 == len(profile.t_s)
        end_s = at_s if is_last else profile.t_s[index + 1]
        first = min(int(at_s), seconds - 1)
        for second in range(first, min(max(math.ceil(end_s), first + 1), seconds)):
            sizes[second] = max(sizes[second], size)
    return sizes


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
