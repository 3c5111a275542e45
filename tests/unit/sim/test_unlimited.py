"""All runs at once, without limits."""

from ramherd.core.memory import MB
from ramherd.sim.course import Course, make_course
from ramherd.sim.peers import fixed, run_peer
from ramherd.sim.profiles import synthetic
from ramherd.sim.unlimited import total_bytes_by_second


def test_sizes_add_up_by_second() -> None:
    """Runs that are over add nothing."""
    assert total_bytes_by_second([[1, 2], [10, 10, 10], [5]]) == [16, 12, 10]
    assert total_bytes_by_second([]) == []


def test_the_kernel_kills_where_the_sum_exceeds_the_limit() -> None:
    """The same as the simulator's fixed number of all runs, up to the first kill."""
    courses = [make_course(profile) for profile in synthetic(3, 12)]
    highest = max(total_bytes_by_second(course.bytes for course in courses))

    for limit, kills in ((highest, 0), (highest - MB, 1)):
        tally = run_peer(fixed(12), courses, limit, most_kills=0)
        assert min(tally.oom_kills, 1) == kills


def test_a_coarse_course_repeats_as_much_time() -> None:
    """A resume costs seconds, not steps."""
    fine = Course("fine", (MB,) * 100, tuple(range(100)))
    coarse = Course("coarse", (MB,) * 20, tuple(range(20)), step_s=5)

    assert (fine.ramp, coarse.ramp) == (5, 1)
    assert (fine.resume_at(50), coarse.resume_at(10)) == (40, 8)
