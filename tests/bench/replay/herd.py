"""The agents of a contest: which profiles, how large, how fast, and in how much memory."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from ramherd.core.policies import Policy
from ramherd.sim import agent
from ramherd.sim.course import Course, make_course
from ramherd.sim.profiles import MB, Profile

# One agent in ten leaves a process behind, as agents do with servers that they start; it would
# outlive any contest.
HELPER_EVERY = 10
HELPER_S = 1800
SLACK_BYTES = Policy().fleet_slack_bytes


@dataclass(frozen=True, slots=True)
class Herd:
    """Memory of real agents, divided by `size`; their seconds, divided by `speed`."""

    name: str
    profiles: Sequence[Profile]
    copies: int
    trace_budget_bytes: int
    size: float
    speed: float

    @property
    def jobs(self) -> int:
        return len(self.profiles) * self.copies

    @property
    def budget_bytes(self) -> int:
        return int(self.trace_budget_bytes / self.size)

    @property
    def slack_bytes(self) -> int:
        """What ramherd lets a fleet exceed its budget by, for as long as it takes to hold it."""
        return self.scaled(SLACK_BYTES)

    @property
    def processes(self) -> int:
        """When all run at once: with what they leave behind, ramherd's supervisor and keeper."""
        return self.jobs + -(-self.jobs // HELPER_EVERY) + 2

    def courses(self) -> list[Course]:
        return [make_course(profile) for profile in self.profiles] * self.copies

    def scaled(self, trace_bytes: int) -> int:
        return int(trace_bytes / self.size)


@dataclass(frozen=True, slots=True)
class AgentJob:
    name: str
    command: Sequence[str]
    state: Path
    trace_s: float


def cut(profile: Profile, most_s: float) -> Profile:
    """The beginning of a profile; a sample holds until the next, so the end is a sample too."""
    if profile.duration_s <= most_s:
        return profile
    t_s = tuple(takewhile(lambda t: t < most_s, profile.t_s))
    sizes = profile.bytes[: len(t_s)]
    return Profile(profile.name, (*t_s, most_s), (*sizes, sizes[-1]))


def make_jobs(herd: Herd, place: Path) -> list[AgentJob]:
    """Each profile in a file of its own: an agent that reads past others starts later."""
    traces = [write_trace(profile, place / f"{n}.jsonl") for n, profile in enumerate(herd.profiles)]
    return [
        make_job(herd, traces[number % len(traces)], place, number) for number in range(herd.jobs)
    ]


def make_job(herd: Herd, trace: Path, place: Path, number: int) -> AgentJob:
    name, profile = f"agent-{number + 1:04}", herd.profiles[number % len(herd.profiles)]
    state = place / f"{name}.state"
    leaves = ["--helper", str(HELPER_S)] if number % HELPER_EVERY == 0 else []
    command = [
        sys.executable, "-I", "-S", agent.__file__, "--traces", str(trace),
        "--size", str(1 / herd.size), "--time", str(1 / herd.speed), "--state", str(state),
        *leaves,
    ]  # fmt: skip
    return AgentJob(name, command, state, profile.duration_s)


def write_trace(profile: Profile, path: Path) -> Path:
    sizes = [size / MB for size in profile.bytes]
    path.write_text(json.dumps({"task": profile.name, "t_s": profile.t_s, "mb": sizes}) + "\n")
    return path


def job_tables(jobs: Sequence[AgentJob]) -> Iterator[dict[str, object]]:
    """For `ramherd run`. An agent that is resumed goes on from its state file."""
    for job in jobs:
        yield {"name": job.name, "command": job.command, "resume_command": job.command}
