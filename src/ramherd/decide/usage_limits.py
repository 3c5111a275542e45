"""Usage limits: which accounts an API does not serve, until when, and which job tries again.

The first job that the API refuses closes a window. Until the window resets, no job of the account
starts; running sessions are left alone. At the reset one job starts as the probe, and the others
follow when the API has replied to it. If the reset is not known, or the account has no access, the
probes continue indefinitely, further and further apart.

All times here are epoch seconds: a reset is a time of day, also on a machine that slept.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ramherd.core.agent_task import (
    FALLBACK,
    NO_ACCESS,
    THIS_MODEL,
    WAIT,
    ApiRefusal,
    Brief,
    name_window,
)
from ramherd.core.model import Job, Reason, Why
from ramherd.core.record import record, replace
from ramherd.decide.back_off import back_off_s
from ramherd.decide.run_end import explain_limit

PROBE_FIRST_S = 60.0
PROBE_MOST_S = 1800.0
# A reset that passed at most this long before its refusal was read counts as reached.
JUST_PASSED_S = 60.0
# A reset further ahead than any window is a mistake.
LONGEST_S = 32 * 86_400.0


class Quota(NamedTuple):
    """Jobs that an API counts together, by agent, account and model ("": the agent's default)."""

    agent: str
    account: str
    model: str


@record
class UsageWindow:
    """Closed until `until_s`, and then until the API has served the probe. `model` is the only
    model that the limit applies to, "" for all; `is_default`: it also applies to jobs without a
    model.
    """

    agent: str
    account: str
    model: str
    window: str
    what: str
    until_s: float
    # Whether `until_s` is the reset; otherwise it is the time of the next probe.
    is_timed: bool = True
    is_default: bool = False
    # Probes that were refused since the window closed.
    refused_probes: int = 0
    # The run that probes whether the API serves the account again.
    probe: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.agent, self.account, self.model

    def concerns(self, quota: Quota) -> bool:
        if (self.agent, self.account) != (quota.agent, quota.account):
            return False
        if not self.model and not self.is_default:
            return True
        if not quota.model:
            return self.is_default
        return bool(self.model) and self.model in quota.model.lower()


def quota_of(brief: Brief, model: str | None = None) -> Quota:
    return Quota(brief.agent, brief.account, brief.model if model is None else model)


def render_quota(job: Job) -> str | None:
    """A key for queues, to skip jobs that wait for their API; None for jobs that never do."""
    if job.brief is None or job.brief.on_limit != WAIT:
        return None
    return "\t".join(quota_of(job.brief))


def parse_quota(text: str) -> Quota:
    return Quota(*text.split("\t", 2))


def after_refusal(
    before: UsageWindow | None, quota: Quota, refusal: ApiRefusal, now_s: float, run: str
) -> UsageWindow:
    """The window after the API has refused `run`. The newest refusal counts; a refusal without a
    reset time keeps the known one.
    """
    is_probe = before is not None and before.probe == run
    refused_probes = (before.refused_probes if before is not None else 0) + is_probe
    until_s, is_timed = choose_known(refusal.until_s, now_s, refused_probes), True
    if until_s is None and before is not None and not is_probe and before.until_s > now_s:
        until_s, is_timed = before.until_s, before.is_timed
    if until_s is None:
        delay_s = back_off_s(refused_probes + 1, PROBE_FIRST_S, PROBE_MOST_S)
        until_s, is_timed = now_s + delay_s, False
    model, is_default = choose_scope(quota, refusal)
    return UsageWindow(
        quota.agent, quota.account, model, refusal.window, refusal.what, until_s,
        is_timed=is_timed, is_default=is_default, refused_probes=refused_probes,
        probe="" if before is None or is_probe else before.probe,
    )  # fmt: skip


def choose_known(until_s: float | None, now_s: float, refused_probes: int) -> float | None:
    """The reset, if the API gave a plausible one. A reset that has just passed is reached, unless a
    probe was refused since: then the clocks differ.
    """
    if until_s is None or until_s > now_s + LONGEST_S:
        return None
    if until_s > now_s:
        return until_s
    has_just_passed = now_s - until_s <= JUST_PASSED_S
    return now_s if has_just_passed and not refused_probes else None


def choose_scope(quota: Quota, refusal: ApiRefusal) -> tuple[str, bool]:
    """The model that a refusal applies to, and whether jobs without a model use it."""
    if not refusal.model:
        return "", False
    model = quota.model.lower() if refusal.model == THIS_MODEL else refusal.model
    return model, not quota.model


def find_closed(
    windows: Iterable[UsageWindow], quota: Quota, now_s: float
) -> UsageWindow | None:  # fmt: skip
    """The window that keeps a job from starting; of several, the one that lasts longest."""
    closed = [
        window
        for window in windows
        if window.concerns(quota) and (now_s < window.until_s or window.probe)
    ]
    return max(closed, key=lambda window: window.until_s, default=None)


def find_probed(
    windows: Iterable[UsageWindow], quota: Quota, now_s: float
) -> list[UsageWindow]:  # fmt: skip
    """The windows for which a job that starts now is the probe."""
    return [
        window
        for window in windows
        if window.concerns(quota) and not window.probe and now_s >= window.until_s
    ]


def choose_quota(brief: Brief, windows: Iterable[UsageWindow], now_s: float) -> Quota:
    """With `on_limit = "fallback_model"`, a limit on the job's model alone causes no wait."""
    own, windows = quota_of(brief), list(windows)
    if brief.on_limit != FALLBACK or not brief.fallback_model:
        return own
    closed = find_closed(windows, own, now_s)
    other = quota_of(brief, brief.fallback_model)
    if closed is None or closed.concerns(other) or find_closed(windows, other, now_s):
        return own
    return other


def with_probe(window: UsageWindow, run: str) -> UsageWindow:
    return replace(window, probe=run)


def end_denial(window: UsageWindow) -> UsageWindow:
    """An account without access is probed now; a usage limit stays until its reset."""
    return replace(window, until_s=0.0) if window.window == NO_ACCESS else window


def explain_window(window: UsageWindow, now_s: float) -> Reason:
    """Why jobs of the account wait."""
    if window.window == NO_ACCESS:
        return Reason(Why.NO_ACCESS, agent=window.agent, what=window.what)
    if now_s >= window.until_s:
        return Reason(Why.USAGE_PROBE, agent=window.agent, window=name_window(window.window))
    until_s = window.until_s if window.is_timed else None
    return explain_limit(window.agent, window.window, window.what, until_s)


def explain_served(window: UsageWindow) -> Reason:
    return Reason(Why.USAGE_SERVED, agent=window.agent)


def explain_near(agent: str, window: str, used_share: float | None) -> Reason:
    used = "nearly all" if used_share is None else f"{round(100 * used_share)} %"
    name = name_window(window)
    return Reason(Why.NEAR_USAGE_LIMIT, agent=agent, window=name, used=used)
