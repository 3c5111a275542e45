"""Situations that a policy has to handle, by name: `ramherd simulate --scenario NAME`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ramherd.core.memory import MB, Mode
from ramherd.core.policies import GrantPolicy, RecyclePolicy
from ramherd.sim.application import Application
from ramherd.sim.course import Course, make_course
from ramherd.sim.hard_herds import GIB, SHORT_S, burst_herd, heavy_herd
from ramherd.sim.oracle import oracle_makespan_s
from ramherd.sim.profiles import synthetic
from ramherd.sim.result import SimCounters, SimResult
from ramherd.sim.sim_jobs import SimJob
from ramherd.sim.simulate import make_jobs
from ramherd.sim.world import Ground, level_ground, run_world

GB = 1000 * MB


@dataclass(frozen=True, slots=True)
class Scenario:
    """`herds` are the jobs of each application."""

    herds: Sequence[Sequence[SimJob]]
    ground: Ground
    policy: GrantPolicy = field(default_factory=GrantPolicy)
    recycling: RecyclePolicy | None = None

    @property
    def courses(self) -> list[Course]:
        return [job.course for herd in self.herds for job in herd]


@dataclass(frozen=True, slots=True)
class Played:
    result: SimResult
    apps: Sequence[Application]


def play(name: str, *, picture: bool = False) -> Played:
    scenario = SCENARIOS[name]()
    tally = SimCounters(picture=[] if picture else None)
    apps = [
        Application(herd, scenario.policy, tally, recycling=scenario.recycling)
        for herd in scenario.herds
    ]
    run_world(apps, scenario.ground, tally)
    courses, budget = scenario.courses, scenario.ground.largest_bytes
    result = SimResult(
        policy="grants",
        traces=name,
        jobs=len(courses),
        budget_bytes=budget,
        oracle_s=oracle_makespan_s(courses, budget),
        area_byte_s=sum(sum(course.bytes) for course in courses),
        tally=tally,
    )
    return Played(result, apps)


def plain(seed: int, number: int) -> list[Course]:
    return [make_course(profile) for profile in synthetic(seed, number)]


def steady(size_bytes: int, seconds: int) -> Course:
    return Course("steady", (size_bytes,) * seconds, tuple(range(seconds)))


def bursting(seconds: int, every_s: int) -> Course:
    """200 MB, and 300 MB more for 3 s, always at the same moment."""
    sizes = tuple((500 if t % every_s >= every_s - 3 else 200) * MB for t in range(seconds))
    calls = tuple(
        t - (t % every_s - (every_s - 3)) if t % every_s >= every_s - 3 else t
        for t in range(seconds)
    )
    return Course("bursting", sizes, calls)


def in_step() -> Scenario:
    return Scenario([make_jobs([bursting(300, 60)] * 60)], level_ground(4 * GB))


def all_leak() -> Scenario:
    """A megabyte a second each: at the end of a run three times its memory at the start."""
    jobs = make_jobs([steady(200 * MB, 600)] * 40)
    for job in jobs:
        job.leak_bytes_per_s = MB
    return Scenario(
        [jobs], level_ground(4 * GB), recycling=RecyclePolicy(recycle_at_bytes=500 * MB)
    )


def outside() -> Scenario:
    """Another program takes half of the memory for ten minutes."""

    def budget_at(second: int) -> int:
        return 2 * GB if 600 <= second < 1200 else 4 * GB

    return Scenario([make_jobs(plain(1, 100))], Ground(budget_at, 4 * GB))


def two_applications() -> Scenario:
    herds = [make_jobs(plain(1, 60), prefix="one"), make_jobs(plain(2, 60), prefix="two")]
    return Scenario(herds, level_ground(4 * GB))


def too_big() -> Scenario:
    courses = plain(1, 60)
    courses.insert(20, grown(5 * GB, 200))
    return Scenario([make_jobs(courses)], level_ground(4 * GB))


def nine_tenths() -> Scenario:
    courses = plain(1, 300)
    courses.insert(50, grown(int(3.6 * GB), 200))
    return Scenario([make_jobs(courses)], level_ground(4 * GB))


def grown(size_bytes: int, seconds: int) -> Course:
    """200 MB at first, then suddenly much more, until the end."""
    sizes = (200 * MB,) * 60 + (size_bytes,) * (seconds - 60)
    return Course("grown", sizes, (*range(60), *(60,) * (seconds - 60)))


def thousand() -> Scenario:
    return Scenario([make_jobs(plain(1, 1000))], level_ground(int(12.8 * GB)))


def no_resume() -> Scenario:
    return Scenario([make_jobs(plain(1, 200), Mode.STARTS_OVER)], level_ground(4 * GB))


def equal_durations() -> Scenario:
    """All start and all end together, wave after wave."""
    courses = [
        Course(course.name, course.bytes[:300], course.calls[:300])
        for course in plain(3, 300)
        if course.seconds >= 300
    ]
    return Scenario([make_jobs(courses)], level_ground(4 * GB))


def small_machine() -> Scenario:
    """4 GB of memory: four fifths of it less a gigabyte for the system."""
    return Scenario([make_jobs(plain(1, 60))], level_ground(int(2.2 * GB)))


def small_commands() -> Scenario:
    """Far smaller than an agent, with a matching `memory`."""
    return Scenario([promising(60 * MB, [steady(50 * MB, 120)] * 190)], level_ground(4 * GB))


def understated() -> Scenario:
    """`memory` is a fifth of what the jobs will need."""
    return Scenario([promising(40 * MB, plain(1, 200))], level_ground(4 * GB))


def promising(memory_bytes: int, courses: Sequence[Course]) -> list[SimJob]:
    jobs = make_jobs(courses)
    for job in jobs:
        job.need_bytes = memory_bytes
    return jobs


def large_machine() -> Scenario:
    """256 GB of memory, and more jobs than fit at once; they are short, to keep it quick."""
    courses = [
        Course(course.name, course.bytes[:120], course.calls[:120]) for course in plain(1, 1300)
    ]
    return Scenario([make_jobs(courses)], level_ground(int(0.8 * 256 * GB)))


def bursts_some() -> Scenario:
    """7 of 20 agents have two tool calls of more than a gigabyte."""
    return Scenario([make_jobs(burst_herd(1000, 20, 7, SHORT_S))], level_ground(3 * GIB))


def bursts_all() -> Scenario:
    return Scenario([make_jobs(burst_herd(1000, 8, 8, SHORT_S))], level_ground(3 * GIB))


def heavy_tail() -> Scenario:
    """Three of 200 need nine tenths of the memory for a while."""
    budget = 4 * GB
    return Scenario([make_jobs(heavy_herd(plain(1, 200), budget, seed=1))], level_ground(budget))


def two_giants() -> Scenario:
    """Two applications, each with a job that needs two thirds of the memory."""
    herds = [
        make_jobs([*plain(seed, 20), grown(int(2.7 * GB), 200)], prefix=name)
        for seed, name in ((1, "one"), (2, "two"))
    ]
    return Scenario(herds, level_ground(4 * GB))


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "in-step": in_step,
    "all-leak": all_leak,
    "outside": outside,
    "two-applications": two_applications,
    "too-big": too_big,
    "nine-tenths": nine_tenths,
    "thousand": thousand,
    "no-resume": no_resume,
    "equal-durations": equal_durations,
    "small-machine": small_machine,
    "large-machine": large_machine,
    "small-commands": small_commands,
    "understated": understated,
    "bursts-some": bursts_some,
    "bursts-all": bursts_all,
    "heavy-tail": heavy_tail,
    "two-giants": two_giants,
}
