"""The limits of the agents' APIs: whether a job may start now, and if not, why.

One place for both reasons to wait: an API that is too busy (starts of an account are paced,
`decide/start_pace.py`), and an API that refuses an account for now (`decide/usage_limits.py`). The
first ends with the supervisor; the second is in the store, for the next supervisor and for lists.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ramherd.core.agent_task import FAIL, NO_ACCESS, ApiRefusal
from ramherd.core.model import Job, JobState, JobStatus, Reason, Settle
from ramherd.decide.start_pace import (
    Pace,
    after_overload,
    after_start,
    explain_slot,
    find_slot,
    next_pace,
)
from ramherd.decide.usage_limits import (
    Quota,
    UsageWindow,
    after_refusal,
    choose_quota,
    end_denial,
    explain_served,
    explain_window,
    find_closed,
    find_probed,
    quota_of,
    with_probe,
)

Account = tuple[str, str]
NEVER_S = float("inf")


@dataclass
class ApiLimits:
    # Epoch seconds: resets are given in wall-clock time.
    now: Callable[[], float] = time.time
    windows: dict[tuple[str, str, str], UsageWindow] = field(default_factory=dict)
    # Windows that have changed since the store was last written; None: the window is over.
    unsaved: dict[tuple[str, str, str], UsageWindow | None] = field(default_factory=dict)
    _paces: dict[Account, Pace] = field(default_factory=dict)
    _calmed: list[str] = field(default_factory=list)
    _warned: set[tuple[str, str, str]] = field(default_factory=set)

    # Usage limits.

    def load(self, windows: Iterable[UsageWindow], *, is_new_herd: bool = False) -> None:
        """Loads the windows of the store. A probe belongs to the supervisor that started it.
        `is_new_herd`: the user has just started the herd, perhaps after a login, so an account
        without access is tried.
        """
        if self.unsaved:
            return
        if is_new_herd:
            windows = map(end_denial, windows)
        probes = {key: window.probe for key, window in self.windows.items()}
        self.windows = {one.key: with_probe(one, probes.get(one.key, "")) for one in windows}

    def close(self, run: str, quota: Quota, refusal: ApiRefusal) -> Reason | None:
        """The API refused a run. Returns the reason if it was not reported yet."""
        now_s = self.now()
        found = after_refusal(None, quota, refusal, now_s, run)
        before = self.windows.get(found.key)
        after = after_refusal(before, quota, refusal, now_s, run)
        self._set(after)
        if before is not None and before.until_s == after.until_s:
            return None
        return explain_window(after, now_s)

    def record_start(self, run: str, quota: Quota, at_s: float) -> None:
        for window in find_probed(self.windows.values(), quota, self.now()):
            self.windows[window.key] = with_probe(window, run)
        account = quota[:2]
        if account in self._paces:
            self._paces[account] = after_start(self._paces[account], at_s)

    def record_reply(self, run: str) -> Iterator[Reason]:
        """The API serves a run: if the run is a probe, the other jobs follow."""
        for window in [one for one in self.windows.values() if one.probe == run]:
            del self.windows[window.key]
            self.unsaved[window.key] = None
            yield explain_served(window)

    def record_end(self, run: str) -> None:
        """A probe that ended without a reply proves nothing: another job becomes the next probe."""
        for window in self.windows.values():
            if window.probe == run:
                self.windows[window.key] = with_probe(window, "")

    def _set(self, window: UsageWindow) -> None:
        self.windows[window.key] = self.unsaved[window.key] = window

    def save_again(self) -> None:
        """The store was lost: all windows are saved again."""
        self.unsaved |= self.windows

    def find_waits(self, quotas: Collection[Quota]) -> list[Reason]:
        """Why jobs with these quotas wait now, if they do."""
        now_s = self.now()
        return [
            explain_window(window, now_s)
            for window in self.windows.values()
            if window.until_s > now_s and any(map(window.concerns, quotas))
        ]

    def pop_unsaved(self) -> dict[tuple[str, str, str], UsageWindow | None]:
        unsaved, self.unsaved = self.unsaved, {}
        return unsaved

    def warn_once(self, agent: str, account: str, window: str) -> bool:
        """Whether this is the supervisor's first warning about that window."""
        key = agent, account, window
        is_new = key not in self._warned
        self._warned.add(key)
        return is_new

    def choose_quota(self, job: Job) -> Quota | None:
        """None for a command."""
        if job.brief is None:
            return None
        if not self.windows:
            return quota_of(job.brief)
        return choose_quota(job.brief, self.windows.values(), self.now())

    def is_closed(self, quota: Quota) -> bool:
        return find_closed(self.windows.values(), quota, self.now()) is not None

    def find_closed(self, job: Job) -> UsageWindow | None:
        quota = self.choose_quota(job)
        if quota is None:
            return None
        return find_closed(self.windows.values(), quota, self.now())

    def find_reason(self, job: Job) -> Reason | None:
        """Why this job waits for its API."""
        closed = self.find_closed(job)
        return None if closed is None else explain_window(closed, self.now())

    def end_unserved(self, queue: Iterable[JobStatus], *, is_idle: bool) -> list[Settle]:
        """Jobs with `on_limit = "fail"` fail. If nothing runs, and each job waits for an account
        without access, all are cancelled: `ramherd run --resume` goes on with them.
        """
        known: dict[tuple[Quota, str, str], UsageWindow | None] = {}

        def find(job: Job) -> UsageWindow | None:
            if job.brief is None:
                return None
            key = quota_of(job.brief), job.brief.on_limit, job.brief.fallback_model
            if key not in known:
                known[key] = self.find_closed(job)
            return known[key]

        jobs = [status.job for status in queue]
        if not is_idle or not all(is_denied(find(job)) for job in jobs):
            jobs = [job for job in jobs if fails_at_limit(job)]
        closed = ((job, window) for job in jobs if (window := find(job)) is not None)
        now_s = self.now()
        return [
            Settle(
                job.id, JobState.FAILED if fails_at_limit(job) else JobState.CANCELLED,
                explain_window(window, now_s),
            )
            for job, window in closed
        ]  # fmt: skip

    # The order of starts.

    def choose_times(
        self, line: Iterable[tuple[Job, float]], at_s: float
    ) -> Iterator[tuple[float, Reason | None]]:
        """For each job in line, the time from which it may start, and why it may not start now.
        Each job comes with the end of its own back-off, or 0: a job in back-off takes no place in
        line.
        """
        claimed: set[tuple[str, str, str]] = set()
        taken: dict[Account, int] = {}
        recovered: set[Account] = set()
        for job, back_off_end_s in line:
            quota = self.choose_quota(job)
            if quota is None or back_off_end_s > at_s:
                yield back_off_end_s, None
                continue
            if (closed := self._find_closed(quota, claimed)) is not None:
                yield NEVER_S, explain_window(closed, self.now())
                continue
            account = quota[:2]
            if account not in recovered:
                recovered.add(account)
                self._recover(account, at_s)
            pace = self._paces.get(account, Pace())
            slot_s = find_slot(pace, back_off_end_s, taken.get(account, 0), at_s)
            taken[account] = taken.get(account, 0) + 1
            yield slot_s, explain_slot(quota.agent, slot_s - at_s) if slot_s > at_s else None

    def _find_closed(
        self, quota: Quota, claimed: set[tuple[str, str, str]]
    ) -> UsageWindow | None:  # fmt: skip
        """Applies to the jobs behind the next probe as well."""
        if not self.windows:
            return None
        now_s = self.now()
        if (closed := find_closed(self.windows.values(), quota, now_s)) is not None:
            return closed
        probed = find_probed(self.windows.values(), quota, now_s)
        found = next((window for window in probed if window.key in claimed), None)
        claimed.update(window.key for window in probed)
        return found

    # A busy API.

    def slow_down(self, quota: Quota, at_s: float) -> float | None:
        """Returns the new interval between starts, or None if it was in force already."""
        account = quota[:2]
        before = self._paces.get(account, Pace())
        after = self._paces[account] = after_overload(before, at_s)
        return None if after is before else after.pause_s

    def _recover(self, account: Account, at_s: float) -> None:
        if account in self._paces:
            self._paces[account] = next_pace(self._paces[account], at_s)
            if not self._paces[account].pause_s:
                del self._paces[account]
                self._calmed.append(account[0])

    def pop_calmed(self) -> list[str]:
        """The agents whose starts have returned to the usual pace since the last call."""
        calmed, self._calmed = self._calmed, []
        return calmed


def is_denied(window: UsageWindow | None) -> bool:
    return window is not None and window.window == NO_ACCESS


def fails_at_limit(job: Job) -> bool:
    return job.brief is not None and job.brief.on_limit == FAIL
