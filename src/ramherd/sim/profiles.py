"""Memory over time: the input of fake agents and simulations.

Covers trace files, scaling, splitting off bursts, and a built-in generator shaped like measured
runs of a coding agent. Pure: lines and numbers in, profiles out; the caller handles files and
clocks.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ramherd.core.errors import UsageError
from ramherd.sim.synthetic_runs import run_mb

MB = 10**6
# Above any machine and any run; keeps NaN, infinity and 400-digit integers out of a profile.
_LIMIT = 1e9
# On each side: nine of ten bursts in the traces last 7 s or less, so the median ignores them.
_WINDOW_S = 20.0


class Profile(NamedTuple):
    """A sample holds until the next one; the last sample marks the end and has no length.

    Steps instead of lines: samples are a second apart and tool calls grow by gigabytes within one,
    so a line would invent a slope, and a burst of one sample would reach its peak for no time at
    all. A NamedTuple, because a dataclass costs each fake agent 1 MB more.
    """

    name: str
    t_s: tuple[float, ...]
    bytes: tuple[int, ...]

    @property
    def duration_s(self) -> float:
        return self.t_s[-1]

    @property
    def peak_bytes(self) -> int:
        return max(self.bytes)

    @property
    def mean_bytes(self) -> float:
        """Weighted by time; for a profile without length, its only sample."""
        lengths_s = [end - start for start, end in pairwise(self.t_s)]
        area = sum(size * s for size, s in zip(self.bytes, lengths_s, strict=False))
        length_s = self.t_s[-1] - self.t_s[0]
        return area / length_s if length_s else float(self.bytes[0])

    def sample_at(self, t_s: float) -> int:
        """Index of the sample that holds at `t_s`; the first also holds before its own time."""
        return max(0, bisect_right(self.t_s, t_s) - 1)


def flat(size_bytes: int, for_s: float) -> Profile:
    """Constant memory."""
    return Profile("flat", (0.0, for_s), (size_bytes, size_bytes))


def scaled(profile: Profile, size: float, time: float) -> Profile:
    """The same shape with memory times `size` and seconds times `time`."""
    t_s = tuple(t * time for t in profile.t_s)
    return Profile(profile.name, t_s, tuple(int(b * size) for b in profile.bytes))


def split_bursts(profile: Profile) -> tuple[Profile, Profile]:
    """The memory of the agent itself, and the additional memory of its tool calls.

    A burst is an eighth above the running median: 27 MB at the usual 215 MB. In the traces this
    separates the jitter of an idle agent (5 MB a second at p95) from tool calls.
    """
    own: list[int] = []
    for t, size in zip(profile.t_s, profile.bytes, strict=True):
        low, high = profile.sample_at(t - _WINDOW_S), profile.sample_at(t + _WINDOW_S)
        window = sorted(profile.bytes[low : high + 1])
        median = window[len(window) // 2]
        own.append(median if size * 8 > median * 9 else size)
    burst = tuple(size - mine for size, mine in zip(profile.bytes, own, strict=True))
    return profile._replace(bytes=tuple(own)), profile._replace(bytes=burst)


def synthetic(seed: int, n: int) -> list[Profile]:
    """The first `n` profiles of this seed; a longer list begins with the shorter one."""
    return [synthetic_at(seed, index) for index in range(n)]


def synthetic_at(seed: int, index: int) -> Profile:
    """One profile alone, without generating those before it."""
    mb = run_mb(seed, index)
    t_s = tuple(float(t) for t in range(len(mb)))
    return Profile(f"synthetic-{seed}-{index}", t_s, tuple(int(value * MB) for value in mb))


def parse_traces(lines: Iterable[str]) -> Iterator[Profile]:
    """One profile per JSON line with `task`, `t_s` and `mb`; other keys are ignored."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _parse_line(line, number)


def _parse_line(line: str, number: int) -> Profile:
    # Imported here to save 1 MB in a fake agent with a synthetic profile.
    import json  # noqa: PLC0415

    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(number, f"is not JSON: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("task"), str):
        raise _bad(number, "is not an object with a `task` name")
    t_s, mb = _numbers(record, "t_s", number), _numbers(record, "mb", number)
    if len(t_s) != len(mb):
        raise _bad(number, f"has {len(t_s)} values in `t_s` and {len(mb)} in `mb`")
    if any(after <= before for before, after in pairwise(t_s)):
        raise _bad(number, "has times in `t_s` that do not grow")
    return Profile(record["task"], tuple(t_s), tuple(round(size * MB) for size in mb))


def _numbers(record: dict[str, object], key: str, number: int) -> list[float]:
    values = record.get(key)
    if not isinstance(values, list) or not values:
        raise _bad(number, f"has no list of numbers in `{key}`")
    for value in values:
        if type(value) not in (int, float) or not 0 <= value <= _LIMIT:
            raise _bad(
                number, f"has {str(value)[:40]!r} in `{key}`, not a number from 0 to {_LIMIT:g}"
            )
    return [float(value) for value in values]


def _bad(number: int, what: str) -> UsageError:
    return UsageError(
        f"trace line {number} {what}",
        hint='each line is like {"task": "a", "t_s": [0, 1.0], "mb": [12.5, 190]}',
    )
