"""A whole simulation: applications on one machine, second by second, until all jobs ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramherd.grants import GrantPolicy, Mode
from ramherd.sim.application import Application
from ramherd.sim.course import Course
from ramherd.sim.herd import SimJob
from ramherd.sim.result import Tally

LONGEST_S = 40 * 86_400


def make_jobs(
    courses: Sequence[Course], mode: Mode = Mode.RESUMES, *, prefix: str = "job"
) -> list[SimJob]:
    return [SimJob(f"{prefix}-{seq:04}", seq, course, mode) for seq, course in enumerate(courses)]


@dataclass(frozen=True, slots=True)
class Ground:
    """The machine: what is there for all applications together at each second."""

    budget_at: Callable[[int], int]
    largest_bytes: int


def level_ground(budget_bytes: int) -> Ground:
    return Ground(lambda _at_s: budget_bytes, budget_bytes)


def run_grants(
    jobs: Sequence[SimJob],
    ground: Ground,
    policy: GrantPolicy | None = None,
    *,
    picture: bool = False,
) -> Tally:
    """One application that has the whole budget."""
    tally = Tally(picture=[] if picture else None)
    app = Application(jobs, policy or GrantPolicy(), tally)
    app.largest_bytes = ground.largest_bytes
    owed_s = 0
    while not app.is_over and tally.makespan_s < LONGEST_S:
        app.lease_bytes = ground.budget_at(tally.makespan_s)
        app.step(float(tally.makespan_s))
        owed_s = owed_s + 1 if app.granted_bytes > app.lease_bytes else 0
        tally.debt_s = max(tally.debt_s, owed_s)
        tally.see({run.id: run.used for run in app.runs.values()})
        count_oom(app, ground.budget_at(tally.makespan_s), owed_s, tally)
        tally.makespan_s += 1
    return tally


def count_oom(app: Application, budget_bytes: int, owed_s: int, tally: Tally) -> None:
    """The same limit that peers are killed at. After the budget fell, what is over it is debt,
    which the machine has 20 % of its memory to stand for a while.
    """
    if not owed_s and app.used_bytes > budget_bytes:
        tally.oom_kills += 1
