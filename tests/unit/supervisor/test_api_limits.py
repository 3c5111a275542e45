"""What APIs allow, as the start path asks for it."""

from ramherd.core.agent_task import FAIL, FALLBACK, NO_ACCESS, ApiRefusal, Brief
from ramherd.core.model import Job, JobState, Reason, Settle, Why
from ramherd.core.record import replace
from ramherd.decide.usage_limits import quota_of
from ramherd.supervisor.api_limits import ApiLimits
from support.make import job, status

LIMIT = ApiRefusal("limit", "five_hour", 1020.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def agent_job(name: str = "a", agent: str = "claude", on_limit: str = "wait") -> Job:
    return job(name, brief=Brief(agent, "do it", account="a1", on_limit=on_limit))


def quota(of: Job):  # type: ignore[no-untyped-def]
    assert of.brief is not None
    return quota_of(of.brief)


def open_ones(limits: ApiLimits, *jobs: Job, at_s: float = 5.0) -> list[bool]:
    line = [(one, 0.0) for one in jobs]
    return [time_s <= at_s for time_s, _ in limits.choose_times(line, at_s)]


CLAUDE, SECOND, CODEX, COMMAND = agent_job(), agent_job("b"), agent_job("c", "codex"), job("d")
LINE = (CLAUDE, SECOND, CODEX, COMMAND)


def test_from_the_refusal_to_the_reply_of_the_probe() -> None:
    """Others go on; at the reset one starts, and the rest when it is served."""
    limits = ApiLimits(clock := Clock())
    assert open_ones(limits, *LINE) == [True] * 4
    why = limits.close("r1", quota(CLAUDE), LIMIT)
    assert why is not None
    assert why.why is Why.USAGE_LIMIT
    assert limits.close("r2", quota(CLAUDE), LIMIT) is None
    assert open_ones(limits, *LINE) == [False, False, True, True]
    assert limits.find_reason(CLAUDE) == why

    clock.now_s = 1020.0
    assert open_ones(limits, *LINE) == [True, False, True, True]
    limits.record_start("p", quota(CLAUDE), 5.0)
    assert open_ones(limits, *LINE) == [False, False, True, True]
    assert list(limits.record_reply("another")) == []
    assert list(limits.record_reply("p")) == [Reason(Why.USAGE_SERVED, agent="claude")]
    assert open_ones(limits, *LINE) == [True] * 4
    assert list(limits.pop_unsaved().values()) == [None]
    assert limits.pop_unsaved() == {}


def test_only_limits_of_the_asked_accounts_are_found() -> None:
    """Until they are over."""
    limits = ApiLimits(clock := Clock())
    why = limits.close("r1", quota(CLAUDE), LIMIT)
    assert limits.find_waits({quota(CLAUDE), quota(CODEX)}) == [why]
    assert limits.find_waits({quota(CODEX)}) == []
    clock.now_s = 1020.0
    assert limits.find_waits({quota(CLAUDE)}) == []


def test_a_probe_that_ends_without_a_reply_shows_nothing() -> None:
    """The next job asks; a probe that is refused closes the window again."""
    limits = ApiLimits(clock := Clock())
    limits.close("r1", quota(CLAUDE), LIMIT)
    clock.now_s = 1020.0
    limits.record_start("p", quota(CLAUDE), 5.0)
    limits.record_end("p")
    assert open_ones(limits, *LINE) == [True, False, True, True]
    limits.record_start("q", quota(CLAUDE), 5.0)
    limits.close("q", quota(CLAUDE), ApiRefusal("limit", "five_hour", 1040.0))
    limits.record_end("q")
    assert open_ones(limits, *LINE) == [False, False, True, True]
    clock.now_s = 1040.0
    assert open_ones(limits, *LINE) == [True, False, True, True]


def test_a_stored_window_holds_for_the_next_supervisor() -> None:
    """And what a user has asked for since; a probe that runs stays one."""
    limits, later = ApiLimits(clock := Clock()), ApiLimits(clock)
    limits.close("r1", quota(CLAUDE), LIMIT)
    (window,) = limits.windows.values()
    limits.load([])
    assert limits.windows  # the store has not got it yet
    later.load([window])
    assert open_ones(later, *LINE) == [False, False, True, True]
    clock.now_s = 1020.0
    later.record_start("p", quota(CLAUDE), 5.0)
    later.load([window])
    assert open_ones(later, *LINE) == [False, False, True, True]


def test_a_job_in_its_back_off_takes_no_place_in_line() -> None:
    """Seen: a job that was ready waited for nine that were not."""
    limits = ApiLimits(Clock())
    assert limits.slow_down(quota(CLAUDE), 100.0) == 2.0
    assert limits.slow_down(quota(CLAUDE), 101.0) is None
    waiting = [(agent_job(f"w{n}"), 500.0) for n in range(9)]
    found = list(limits.choose_times([*waiting, (SECOND, 90.0), (CLAUDE, 0.0)], 101.0))

    assert found[:9] == [(500.0, None)] * 9
    assert [time_s for time_s, _ in found[9:]] == [102.0, 104.0]
    assert found[9][1] == Reason(Why.OVERLOAD_PACE, agent="claude", wait_s=1.0)
    limits.record_start("r", quota(CLAUDE), 103.0)
    assert [time_s for time_s, _ in limits.choose_times([(CLAUDE, 0.0)], 103.0)] == [105.0]
    assert [time_s for time_s, _ in limits.choose_times([(CLAUDE, 0.0)], 109.0)] == [0.0]
    assert (limits.pop_calmed(), limits.pop_calmed()) == (["claude"], [])


def test_a_warning_is_given_once() -> None:
    limits = ApiLimits(Clock())

    assert limits.warn_once("claude", "a1", "five_hour")
    assert not limits.warn_once("claude", "a1", "five_hour")
    assert limits.warn_once("claude", "a1", "seven_day")


def test_jobs_that_do_not_wait() -> None:
    """`on_limit = "fail"` fails; all are cancelled if nothing runs and no account has access."""
    limits = ApiLimits(Clock())
    limits.close("r1", quota(CLAUDE), ApiRefusal("401", NO_ACCESS))
    queue = [status(CLAUDE), status(SECOND)]
    failing = status(agent_job("f", on_limit=FAIL))
    why = Reason(Why.NO_ACCESS, agent="claude", what="401")

    assert limits.end_unserved([*queue, failing], is_idle=False) == [
        Settle(failing.job.id, JobState.FAILED, why)
    ]
    assert limits.end_unserved(queue, is_idle=False) == []
    assert limits.end_unserved([*queue, status(COMMAND)], is_idle=True) == []
    assert limits.end_unserved([*queue, status(CODEX)], is_idle=True) == []
    assert limits.end_unserved(queue, is_idle=True) == [
        Settle(one.job.id, JobState.CANCELLED, why) for one in queue
    ]


def test_jobs_with_other_fallback_models_are_not_taken_for_one_another() -> None:
    """One of them has a model that the API serves: not all wait for an account without access."""
    limits = ApiLimits(Clock())
    asked = Brief("claude", "do it", model="opus", account="a1", on_limit=FALLBACK)
    same = job("same", brief=replace(asked, fallback_model="opus-mini"))
    other = job("other", brief=replace(asked, fallback_model="haiku"))
    limits.close("r1", quota(same), ApiRefusal("403", NO_ACCESS, model="opus"))

    assert limits.end_unserved([status(same), status(other)], is_idle=True) == []
    (settled,) = limits.end_unserved([status(same)], is_idle=True)
    assert settled.state is JobState.CANCELLED
