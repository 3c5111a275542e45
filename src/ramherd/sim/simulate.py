"""Entry points: the governor or a peer on a list of courses, compared with the oracle."""

from collections.abc import Sequence

from ramherd.core.memory import Mode
from ramherd.core.policies import GrantPolicy, RecyclePolicy
from ramherd.sim.application import Application
from ramherd.sim.course import Course
from ramherd.sim.oracle import oracle_makespan_s
from ramherd.sim.peers import parse_peer, run_peer
from ramherd.sim.result import SimCounters, SimResult
from ramherd.sim.sim_jobs import SimJob
from ramherd.sim.world import Ground, level_ground, run_world

GRANTS = "grants"


def make_jobs(
    courses: Sequence[Course], mode: Mode = Mode.RESUMES, *, prefix: str = "job"
) -> list[SimJob]:
    return [SimJob(f"{prefix}-{seq:04}", seq, course, mode) for seq, course in enumerate(courses)]


def run_grants(
    jobs: Sequence[SimJob],
    ground: Ground,
    policy: GrantPolicy | None = None,
    *,
    recycling: RecyclePolicy | None = None,
    picture: bool = False,
) -> SimCounters:
    """One application with the whole budget."""
    tally = SimCounters(picture=[] if picture else None)
    app = Application(jobs, policy or GrantPolicy(), tally, recycling=recycling)
    return run_world([app], ground, tally)


def simulate(
    courses: Sequence[Course],
    budget_bytes: int,
    policy: str = GRANTS,
    *,
    traces: str = "",
    mode: Mode = Mode.RESUMES,
    oracle_s: int | None = None,
    picture: bool = False,
) -> SimResult:
    if policy == GRANTS:
        jobs = make_jobs(courses, mode)
        tally = run_grants(jobs, level_ground(budget_bytes), picture=picture)
    else:
        peer = parse_peer(policy, budget_bytes)
        tally = run_peer(peer, courses, budget_bytes, picture=picture)
    return SimResult(
        policy=policy,
        traces=traces,
        jobs=len(courses),
        budget_bytes=budget_bytes,
        oracle_s=oracle_makespan_s(courses, budget_bytes) if oracle_s is None else oracle_s,
        area_byte_s=sum(sum(course.bytes) for course in courses),
        tally=tally,
    )
