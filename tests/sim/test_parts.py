"""Oracle, peers and costs on traces small enough to check by hand."""

from ramherd.core.memory import MB, Mode
from ramherd.sim.course import Course, make_course
from ramherd.sim.oracle import oracle_makespan_s, oracle_starts, passing_makespan_s
from ramherd.sim.peers import fixed, memfree, run_peer
from ramherd.sim.profiles import Profile
from ramherd.sim.simulate import simulate


def course(*mb: int) -> Course:
    return Course("hand", tuple(size * MB for size in mb), tuple(range(len(mb))))


def test_the_oracle_starts_each_job_when_its_whole_trace_fits() -> None:
    """The peak of the second job comes in the second after the end of the first."""
    assert oracle_starts([course(5, 5, 5), course(1, 8)], 10 * MB) == [0, 2]


def test_the_oracle_lets_nobody_pass() -> None:
    """The third job would fit at once, but the second is in front of it."""
    jobs = [course(6, 6, 6), course(6, 6), course(2)]

    assert oracle_starts(jobs, 10 * MB) == [0, 3, 3]
    assert oracle_makespan_s(jobs, 10 * MB) == 5
    assert passing_makespan_s(jobs, 10 * MB) == 5


def test_the_oracle_leaves_out_what_never_fits() -> None:
    """It continues with the next job."""
    assert oracle_starts([course(20), course(5)], 10 * MB) == [None, 0]


def test_the_kernel_kills_the_largest_of_a_fixed_number() -> None:
    """Over the limit in the second second: 6 and 5 of 10. Its work is repeated."""
    tally = run_peer(fixed(2), [course(3, 6, 3), course(3, 5, 3)], 10 * MB)

    assert (tally.oom_kills, tally.done) == (1, 2)
    assert tally.redone_s == 1


def test_memfree_kills_the_youngest_when_memory_runs_out() -> None:
    """Started with 5 free, killed below 2.5."""
    tally = run_peer(memfree(5 * MB), [course(1, 1, 8, 8), course(1, 1, 1, 1)], 10 * MB)

    assert tally.preempted >= 1
    assert tally.done == 2


def test_a_second_holds_its_highest_sample() -> None:
    """A burst between two measurements is not lost."""
    profile = Profile("p", (0.0, 0.4, 0.8, 2.0), (1 * MB, 9 * MB, 2 * MB, 2 * MB))

    assert make_course(profile).bytes == (9 * MB, 2 * MB)


def test_a_resume_goes_back_before_the_open_tool_call() -> None:
    """At least ten seconds."""
    open_call = Course("c", (MB,) * 100, (*range(50), *(50,) * 40, *range(90, 100)))

    assert open_call.resume_at(80) == 50
    assert open_call.resume_at(95) == 85
    assert open_call.resume_at(4) == 0


def test_growth_within_a_second_is_held_until_it_is_granted() -> None:
    """Two runs need 600 MB at the same time and there are 1000: one waits, none is killed."""
    burst = course(*[100] * 30, *[600] * 5, *[100] * 10)
    result = simulate([burst, burst], 1000 * MB)

    assert result.tally.oom_kills == 0
    assert result.tally.peak_bytes <= 1000 * MB
    assert result.tally.done == 2
    assert result.tally.held_s > 0
    assert run_peer(fixed(2), [burst, burst], 1000 * MB).oom_kills > 0


def test_who_cannot_resume_pays_with_all_it_did() -> None:
    """The same herd repeats more work."""
    herd = [course(*[100] * 40, *[500] * 20, *[100] * 40)] * 6
    again = simulate(herd, 1000 * MB, mode=Mode.STARTS_OVER)

    assert again.tally.done == 6
    assert again.tally.oom_kills == 0
