"""The results of a herd, counted while it runs, for the summary and `run --json`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ramherd.act.run import LiveRun
from ramherd.core.agent_task import SAID
from ramherd.core.model import JobState, JobStatus, Reason, RunEnd
from ramherd.core.run_account import RunAccount

# The lengths of at most this many single holds are kept.
MOST_HOLDS = 100_000
# Ends after which the job goes on, and does lost work again.
REDONE = (RunEnd.LOST, RunEnd.OOM_KILL, RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.HEAP_EXHAUSTED)
SILENT: Mapping[str, Any] = dict.fromkeys(SAID)
NO_ANSWERS: Mapping[str, str] = {}
NO_NUMBERS: Mapping[str, int] = {}
# This much of an answer is kept in memory.
ANSWER_LENGTH = 1000


@dataclass
class JobCounters:
    reason: Reason
    end: RunEnd | None = None
    exit_code: int | None = None
    runs: int = 0
    peak_bytes: int = 0
    wall_s: float = 0.0
    held_s: float = 0.0
    log: Path | None = None
    said: Mapping[str, Any] = field(default_factory=lambda: SILENT)

    def add_run(
        self, run: LiveRun, end: RunEnd, reason: Reason, ran_s: float, error: str | None
    ) -> None:
        self.reason, self.end = reason, end
        self.exit_code = run.exit.code if run.exit is not None else None
        self.runs += 1
        self.peak_bytes = max(self.peak_bytes, run.reading.peak_bytes)
        self.wall_s += ran_s
        self.held_s += run.holds.total_s
        self.log = run.dir / "out"
        said = {} if run.agent_run is None else shorten(run.agent_run.as_json())
        if said or error or self.said is not SILENT:
            self.said = {**SILENT, **said, "error": error}


def shorten(said: dict[str, Any]) -> dict[str, Any]:
    """The store has the whole answer: fifty of 16 KiB would be a megabyte of memory."""
    answer = said["result"]
    if answer is None or len(answer) <= ANSWER_LENGTH:
        return said
    return {**said, "result": answer[: ANSWER_LENGTH - 3] + "..."}


def account_of(run: LiveRun, end: RunEnd, ran_s: float) -> RunAccount:
    """A kernel kill at a `memory_limit` that spared the first process counts as well."""
    kills, at_limit = run.reading.kernel_kills, end is RunEnd.LIMIT_KILL
    is_limit = run.reading.limit_hit or at_limit
    return RunAccount(
        held_s=round(run.holds.total_s, 3),
        redone_s=round(count_lost_s(run, ran_s), 3) if end in REDONE else 0.0,
        limit_kills=max(kills, at_limit) if is_limit else 0,
        oom_kills=0 if is_limit else kills,
    )


def count_lost_s(run: LiveRun, ran_s: float) -> float:
    """The time that the next run repeats: the whole run, or the tool call that was open. How far a
    command with a `resume_command` had come is not known.
    """
    if not run.job.resumes:
        return ran_s
    return run.agent_run.open_tool_s if run.agent_run is not None else 0.0


@dataclass
class HerdCounters:
    """`jobs` has an entry for each job of a herd, and is empty in the service, which keeps nothing
    that grows with its jobs.
    """

    jobs: dict[str, JobCounters] = field(default_factory=dict)
    wall_s: float = 0.0
    peak_bytes: int = 0
    oom_kills: int = 0
    limit_kills: int = 0
    preempted: int = 0
    recycled: int = 0
    level_changes: int = 0
    holds: list[float] = field(default_factory=list)
    redone_s: float = 0.0
    leftovers_ended: int = 0
    residue_bytes: int = 0
    available_before: int = 0
    available_after: int = 0
    no_room: bool = False

    def add_run(
        self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float, error: str | None = None
    ) -> None:
        ran_s = at_s - run.started_s
        if (job := self.jobs.get(run.job.id)) is not None:
            job.add_run(run, end, reason, ran_s, error)
            self.holds += run.holds.each_s[: max(MOST_HOLDS - len(self.holds), 0)]
        self.preempted += end is RunEnd.PREEMPTED
        self.recycled += end is RunEnd.RECYCLED
        account = account_of(run, end, ran_s)
        self.redone_s += account.redone_s
        self.limit_kills += account.limit_kills
        self.oom_kills += account.oom_kills

    def record_job(self, status: JobStatus) -> None:
        if (job := self.jobs.get(status.job.id)) is not None:
            job.reason = status.reason

    @property
    def missing_bytes(self) -> int:
        """How much less memory the machine has available than before the herd."""
        return self.available_before - self.available_after

    def as_json(
        self, herd: str, statuses: Iterable[JobStatus], answers: Mapping[str, str] = NO_ANSWERS,
        numbers: Mapping[str, int] = NO_NUMBERS,
    ) -> dict[str, Any]:  # fmt: skip
        """The object that `run --json` prints, except for the caller's part. `numbers` of the jobs
        and `answers` of agents come from the store: the answers here are shortened.
        """
        results = [
            {"job": status.job.name, "number": numbers.get(status.job.id),
             **self._result(status, answers)}
            for status in statuses
        ]  # fmt: skip
        states = [result["state"] for result in results]
        return {
            "herd": herd,
            "jobs": len(results),
            **{
                state.value: states.count(state.value)
                for state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
            },
            "wall_s": round(self.wall_s, 3),
            "peak_bytes": self._find_peak_bytes(),
            "oom_kills": self.oom_kills,
            "limit_kills": self.limit_kills,
            "preempted": self.preempted,
            "recycled": self.recycled,
            "held_s": round(sum(job.held_s for job in self.jobs.values()), 3),
            "redone_s": round(self.redone_s, 3),
            "leftovers_ended": self.leftovers_ended,
            "residue_bytes": self.residue_bytes,
            "level_changes": self.level_changes,
            "results": results,
        }

    def _find_peak_bytes(self) -> int:
        """The peak of one run may have come between two readings of all."""
        return max([self.peak_bytes, *(job.peak_bytes for job in self.jobs.values())])

    def _result(self, status: JobStatus, answers: Mapping[str, str]) -> dict[str, Any]:
        job = self.jobs[status.job.id]
        answer = answers.get(status.job.id) if job.said["result"] is not None else None
        return {
            "state": status.state.value,
            "end": job.end.value if job.end is not None else None,
            "exit_code": job.exit_code,
            "runs": job.runs,
            "peak_bytes": job.peak_bytes,
            "wall_s": round(job.wall_s, 3),
            "held_s": round(job.held_s, 3),
            "log": str(job.log) if job.log is not None else None,
            "reason": status.reason.as_json(),
            **job.said,
            "result": answer or job.said["result"],
        }
