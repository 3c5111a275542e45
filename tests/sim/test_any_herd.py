"""Properties that hold for every herd on every machine, second by second."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ramherd.core.memory import MB, Mode
from ramherd.core.policies import GrantPolicy
from ramherd.sim.application import Application
from ramherd.sim.course import Course
from ramherd.sim.result import SimCounters
from ramherd.sim.sim_jobs import SimJob
from ramherd.sim.world import Ground, level_ground, run_world
from support.reached import Reached

POLICY = GrantPolicy()
BUDGET = 900 * MB
# Above this, a run would not fit alone.
FITS = BUDGET - POLICY.arm_below_bytes


@st.composite
def jobs(draw: st.DrawFn, most_mb: int = 1200) -> list[SimJob]:
    """Up to a dozen jobs that go up and down in steps; some have dependencies or cannot resume."""
    herd: list[SimJob] = []
    for seq in range(draw(st.integers(1, 12))):
        stairs = draw(st.lists(
            st.tuples(st.integers(1, 12), st.integers(5, most_mb)), min_size=1, max_size=5
        ))  # fmt: skip
        sizes = tuple(mb * MB for seconds, mb in stairs for _ in range(seconds))
        course = Course("any", sizes, tuple(range(len(sizes))))
        after = (herd[draw(st.integers(0, seq - 1))].name,) if draw(st.booleans()) and seq else ()
        herd.append(SimJob(
            f"j{seq}", seq, course, draw(st.sampled_from(Mode)), draw(st.integers(0, 1)),
            after=after if herd and fits_with_all(herd, after) else (),
        ))  # fmt: skip
    return herd


def fits_with_all(herd: list[SimJob], after: tuple[str, ...]) -> bool:
    """A job that waits for a failing one is cancelled, which another test covers."""
    return all(job.course.peak_bytes <= FITS for job in herd if job.name in after)


def play(herd: list[SimJob], ground: Ground) -> SimCounters:
    tally = SimCounters()
    return run_world([Application(herd, POLICY, tally)], ground, tally)


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_every_job_that_fits_alone_is_done_and_no_other(
    reached: Reached, herd: list[SimJob]
) -> None:
    """None is lost, and only jobs that need more than the whole budget fail."""
    tally = play(herd, level_ground(BUDGET))

    reached(tally.preempted, "one that makes room")
    reached(tally.failed, "one that is too big")
    reached(tally.done, "one that fits")
    assert tally.oom_kills == 0
    for job in herd:
        assert job.failed == (job.course.peak_bytes > FITS)
        assert job.failed == (job.done_s is None)


def test_a_job_that_needs_the_last_byte_gets_it() -> None:
    """Except for the distance at which growth is noticed."""
    course = Course("whole", (200 * MB, FITS, FITS), (0, 1, 1))
    small = Course("small", (100 * MB,) * 30, tuple(range(30)))
    herd = [SimJob(f"j{seq}", seq, one) for seq, one in enumerate((small, course, small))]

    assert play(herd, level_ground(BUDGET)).done == 3


@settings(max_examples=40, deadline=None)
@given(jobs(), st.lists(st.tuples(st.integers(5, 60), st.integers(0, 900)), min_size=2, max_size=4))
def test_a_budget_that_comes_and_goes_loses_no_job(
    reached: Reached, herd: list[SimJob], falls: list[tuple[int, int]]
) -> None:
    """However the budget changes meanwhile, all jobs are done in the end."""
    ends = [sum(seconds for seconds, _ in falls[: n + 1]) for n in range(len(falls))]

    def budget_at(second: int) -> int:
        for end, (_, mb) in zip(ends, falls, strict=True):
            if second < end:
                return mb * MB
        return BUDGET

    tally = play(herd, Ground(budget_at, BUDGET))
    reached(falls and tally.debt_s, "debt")

    assert tally.oom_kills == 0
    assert all(job.failed == (job.course.peak_bytes > FITS) for job in herd)
    assert tally.done + tally.failed == len(herd)


@settings(max_examples=40, deadline=None)
@given(jobs(most_mb=800))
def test_the_oldest_run_always_gets_on(reached: Reached, herd: list[SimJob]) -> None:
    """It only waits for its patience, for a burst, and while others leave, one in two seconds."""
    tally = SimCounters()
    app = Application(herd, POLICY, tally)
    app.lease_bytes = app.largest_bytes = BUDGET
    still_s, last = 0, ("", -1)
    for second in range(5000):
        if app.is_over:
            reached(tally.preempted, "one that makes room")
            return
        app.step(float(second))
        if not app.runs:
            continue
        oldest = min(app.runs.values(), key=lambda run: run.view().age)
        now = (oldest.id, oldest.position - oldest.ramp_left)
        still_s = still_s + 1 if now == last else 0
        last = now
        assert still_s <= POLICY.patience_s + POLICY.burst_s + 2 * len(herd)
        assert app.granted_bytes <= BUDGET
    raise AssertionError("the herd did not end")


@settings(max_examples=30, deadline=None)
@given(jobs(most_mb=400), jobs(most_mb=400))
def test_two_applications_never_hold_more_than_there_is(
    reached: Reached, one: list[SimJob], two: list[SimJob]
) -> None:
    """Both finish all jobs."""
    tally = SimCounters()
    apps = [Application(herd, POLICY, tally) for herd in (one, two)]

    run_world(apps, level_ground(BUDGET), tally)

    reached(tally.held_s, "one that waits")
    assert tally.oom_kills == 0
    assert tally.debt_s == 0
    assert tally.done == len(one) + len(two)


@settings(max_examples=30, deadline=None)
@given(jobs(most_mb=890), jobs(most_mb=890))
def test_two_applications_with_giants_both_end(
    reached: Reached, one: list[SimJob], two: list[SimJob]
) -> None:
    """Jobs that need more than the share of their application take turns."""
    tally = SimCounters()
    apps = [Application(herd, POLICY, tally) for herd in (one, two)]

    run_world(apps, level_ground(BUDGET), tally, longest_s=20_000)

    share = BUDGET // 2
    reached(all(max(job.course.peak_bytes for job in herd) > share for herd in (one, two)), "both")
    assert tally.oom_kills == 0
    assert tally.done == len(one) + len(two)


def test_two_applications_with_one_giant_each_take_turns() -> None:
    """Each needs two thirds of the budget at the same time."""
    tally = SimCounters()
    herds = [
        [
            SimJob(
                name,
                0,
                Course(name, (100 * MB,) * calm_s + (600 * MB,) * 5, tuple(range(calm_s + 5))),
            )
        ]
        for name, calm_s in (("one", 3), ("two", 8))
    ]
    run_world(
        [Application(herd, POLICY, tally) for herd in herds],
        level_ground(BUDGET),
        tally,
        longest_s=20_000,
    )

    assert (tally.done, tally.oom_kills) == (2, 0)
    assert tally.makespan_s < 120
