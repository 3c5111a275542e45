"""`--ramp N`: more runs only after fewer ran without trouble."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Reason, Why
from ramherd.decide.ramp import Ramp, after_trouble, begin_ramp, next_ramp
from ramherd.supervisor.run_herd import describe_ramp
from support.reached import Reached

HELD = Reason(Why.AT_GRANT, grant_bytes=2, free_bytes=1)
KILLED = Reason(Why.OOM_KILL, peak_bytes=3)


def after(ramp: Ramp, running: int, *times: float) -> Ramp:
    for at_s in times:
        ramp = next_ramp(ramp, running, at_s, settle_s=20.0)
    return ramp


def test_a_step_is_made_when_as_many_as_allowed_have_settled() -> None:
    """Not while fewer runs are live, and not earlier."""
    begun = begin_ramp(5)

    assert after(begun, 4, 0.0, 100.0).allowed == 5
    assert after(begun, 5, 0.0, 19.9).allowed == 5
    assert after(begun, 5, 0.0, 20.0) == Ramp(5, 10, clean=5)


def test_each_step_takes_its_own_time() -> None:
    """A long pause between two checks counts as one step."""
    assert after(begin_ramp(5), 99, 0.0, 500.0).allowed == 10
    assert after(begin_ramp(5), 99, 0.0, 20.0, 20.5, 40.4).allowed == 10
    assert after(begin_ramp(5), 99, 0.0, 20.0, 20.5, 40.5).allowed == 15


def test_trouble_begins_the_step_anew() -> None:
    """The summary names the first trouble."""
    troubled = after_trouble(after_trouble(after(begin_ramp(5), 5, 0.0, 19.0), HELD), KILLED)

    assert (troubled.allowed, troubled.clean, troubled.trouble) == (5, 0, HELD)
    assert after(troubled, 5, 20.0, 39.9).allowed == 5


def test_trouble_is_forgotten_when_as_many_ran_without_it() -> None:
    """The summary names the trouble with more runs than ran without trouble."""
    past = after(after_trouble(begin_ramp(5), HELD), 5, 0.0, 20.0)
    assert (past.clean, past.trouble) == (5, None)

    again = after_trouble(past, KILLED)
    assert (again.clean, again.allowed, again.trouble) == (5, 10, KILLED)


def test_the_summary_tells_what_the_ramp_came_to() -> None:
    """Only if `--ramp` was given."""
    assert describe_ramp(None) == {}
    assert describe_ramp(Ramp(5, 15, clean=10)) == {
        "ramp": {"reached": 15, "clean": 10, "trouble": None}
    }
    trouble = describe_ramp(Ramp(5, 15, clean=10, trouble=HELD))["ramp"]["trouble"]
    assert trouble == {"why": "at_grant", "grant_bytes": 2, "free_bytes": 1}


@given(
    st.integers(1, 9),
    st.lists(
        st.tuples(
            st.integers(0, 60) | st.just(60),
            st.floats(0, 30) | st.just(20.0),
            st.sampled_from((False, False, False, True)),
        ),
        max_size=40,
    ),
)
def test_a_ramp_only_rises_by_its_steps(
    reached: Reached, step: int, looks: list[tuple[int, float, bool]]
) -> None:
    """By at most one step per check, and the clean number is always a step behind."""
    ramp, at_s = begin_ramp(step), 0.0
    for running, past_s, trouble in looks:
        at_s += past_s
        before, ramp = ramp, next_ramp(ramp, running, at_s, settle_s=20.0)
        assert ramp.allowed - before.allowed in (0, step)
        assert ramp.allowed == ramp.clean + step
        ramp = after_trouble(ramp, HELD) if trouble else ramp
    reached(ramp.allowed > step, "a ramp that rose")
