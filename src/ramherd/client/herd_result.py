"""The result of a herd, typed: the object of `ramherd run --json`, with the same names.

A field that an older service does not report is None; an unknown field is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of one job."""

    job: str
    state: str
    number: int | None = None
    end: str | None = None
    exit_code: int | None = None
    runs: int = 0
    peak_bytes: int = 0
    wall_s: float = 0.0
    held_s: float = 0.0
    # The standard output of the last run.
    log: Path | None = None
    reason: Mapping[str, Any] | None = None
    # Agents report the other fields; they are None for commands.
    session: str | None = None
    turns: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    cost_is_estimate: bool | None = None
    result: str | None = None
    model: str | None = None
    branch: str | None = None
    worktree: str | None = None
    files_changed: int | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    denied: list[dict[str, str]] | None = None
    error: str | None = None
    resume: str | None = None
    left_out: list[dict[str, str]] | None = None
    worktree_note: str | None = None
    fallback: Mapping[str, Any] | None = None
    merged_into: str | None = None

    @property
    def ok(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorCost:
    """The resources that ramherd itself used."""

    rss_peak_bytes: int | None = None
    cpu_s: float | None = None
    keeper_rss_peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HerdResult:
    """The result of all jobs of a herd."""

    herd: str
    jobs: int
    done: int
    failed: int
    cancelled: int
    wall_s: float
    results: tuple[JobResult, ...]
    budget_bytes: int | None = None
    peak_bytes: int | None = None
    oom_kills: int | None = None
    limit_kills: int | None = None
    preempted: int | None = None
    recycled: int | None = None
    held_s: float | None = None
    redone_s: float | None = None
    leftovers_ended: int | None = None
    residue_bytes: int | None = None
    pen: str | None = None
    level_changes: int | None = None
    supervisor: SupervisorCost | None = None
    # Whether the service ran the herd.
    service: bool = False

    @property
    def ok(self) -> bool:
        """Whether all jobs are done."""
        return self.done == self.jobs

    def __getitem__(self, job: str) -> JobResult:
        """The result of the job with this name."""
        for one in self.results:
            if one.job == job:
                return one
        raise KeyError(job)


def parse_result(summary: Mapping[str, Any]) -> HerdResult:
    """`summary` is the object of `ramherd run --json`."""
    results = tuple(parse_job_result(one) for one in summary["results"])
    cost = summary.get("supervisor")
    supervisor = None if cost is None else SupervisorCost(**choose_known(SupervisorCost, cost))
    known = choose_known(HerdResult, summary)
    return HerdResult(**{**known, "results": results, "supervisor": supervisor})


def parse_job_result(value: Mapping[str, Any]) -> JobResult:
    log = value.get("log")
    known = choose_known(JobResult, value)
    return JobResult(**{**known, "log": None if log is None else Path(log)})


def choose_known(shape: type[Any], value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(shape)}
    return {name: one for name, one in value.items() if name in names}
