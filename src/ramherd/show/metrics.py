"""Prometheus text from the service's status. docs/metrics.md is made from `METRICS`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ramherd.core.census_row import CensusTotal
from ramherd.core.service_status import Histogram, ServiceStatus

LEVELS = ("calm", "tight", "single")
# An older look of `ramherd watch` says nothing about now.
CENSUS_S = 600.0


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs of the service by state, and the time at which the first of them was queued."""

    counts: Mapping[str, int]
    oldest_s: float | None
    now_s: float
    paused: bool
    api_rss_bytes: int = 0
    # The newest look of `ramherd watch`.
    census: CensusTotal | None = None


Sample = tuple[str, float]


class Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Callable[[ServiceStatus, Queue], Iterator[Sample] | list[Sample]]


def one(value: float) -> list[Sample]:
    return [("", value)]


def each(label: str, values: Mapping[str, float]) -> list[Sample]:
    return [(labels(**{label: name}), value) for name, value in sorted(values.items())]


def labels(**values: str) -> str:
    pairs = (f'{name}="{escape(value)}"' for name, value in values.items())
    return "{" + ",".join(pairs) + "}"


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def histogram(values: Histogram) -> Iterator[Sample]:
    below = 0
    for bound, number in zip((*values.bounds, float("inf")), values.counts, strict=True):
        below += number
        most = "+Inf" if bound == float("inf") else str(bound)
        yield "_bucket" + labels(le=most), below
    yield "_sum", values.sum
    yield "_count", values.number


def of_census(queue: Queue, sample: Callable[[CensusTotal], list[Sample]]) -> list[Sample]:
    """No sample without a recent look."""
    census = queue.census
    return [] if census is None or queue.now_s - census.at_s > CENSUS_S else sample(census)


def census_processes(census: CensusTotal) -> list[Sample]:
    counts = {"agent": census.agents, "server": census.servers, "tool": census.tools}
    return each("kind", counts)


GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
METRICS = (
    Metric("ramherd_up", GAUGE, "1 while the service runs", lambda s, _q: one(float(s.pid > 0))),
    Metric("ramherd_budget_bytes", GAUGE, "what all runs may hold now",
           lambda s, _q: one(s.budget_bytes)),
    Metric("ramherd_leased_bytes", GAUGE, "what the service holds of the machine in the ledger",
           lambda s, _q: one(s.leased_bytes)),
    Metric("ramherd_granted_bytes", GAUGE, "what all runs together are granted",
           lambda s, _q: one(s.granted_bytes)),
    Metric("ramherd_used_bytes", GAUGE, "what all runs together use, without page cache",
           lambda s, _q: one(s.used_bytes)),
    Metric("ramherd_residue_bytes", GAUGE, "what ended runs left in tmpfs",
           lambda s, _q: one(s.residue_bytes)),
    Metric("ramherd_machine_available_bytes", GAUGE, "what the machine has left",
           lambda s, _q: one(s.available_bytes)),
    Metric("ramherd_machine_total_bytes", GAUGE, "what the machine has",
           lambda s, _q: one(s.total_bytes)),
    Metric("ramherd_level", GAUGE, "1 for the level that there is: calm, tight or single",
           lambda s, _q: each("level", {name: float(name == s.level) for name in LEVELS})),
    Metric("ramherd_paused", GAUGE, "1 while nothing is started", lambda _s, q: one(q.paused)),
    Metric("ramherd_jobs", GAUGE, "jobs of the service by state",
           lambda _s, q: each("state", q.counts)),
    Metric("ramherd_queue_age_seconds", GAUGE, "how long the job that waits longest has waited",
           lambda _s, q: one(max(q.now_s - q.oldest_s, 0.0) if q.oldest_s is not None else 0.0)),
    Metric("ramherd_runs", GAUGE, "runs that live", lambda s, _q: one(len(s.runs))),
    Metric("ramherd_runs_held", GAUGE, "runs held at their grant",
           lambda s, _q: one(sum(run.held for run in s.runs))),
    Metric("ramherd_agent_processes", GAUGE, "processes in all pens",
           lambda s, _q: one(sum(run.procs for run in s.runs))),
    Metric("ramherd_mcp_processes", GAUGE, "MCP servers, shared or not",
           lambda s, _q: one(s.mcp_processes)),
    Metric("ramherd_run_used_bytes", GAUGE, "what each run uses, without page cache",
           lambda s, _q: [(labels(job=r.job, name=r.name), r.used_bytes) for r in s.runs]),
    Metric("ramherd_run_leak_bytes_per_second", GAUGE, "how fast a run grows between turns",
           lambda s, _q: [(labels(job=r.job, name=r.name), r.leak_bytes_per_s) for r in s.runs]),
    Metric("ramherd_admissions_total", COUNTER, "runs that were started",
           lambda s, _q: one(s.counters.admissions)),
    Metric("ramherd_waits_total", COUNTER, "times that the first of the queue had to wait, by why",
           lambda s, _q: each("reason", s.counters.waits)),
    Metric("ramherd_holds_total", COUNTER, "times that a run was held, by why",
           lambda s, _q: each("reason", s.counters.holds)),
    Metric("ramherd_preemptions_total", COUNTER, "runs that made room and went back",
           lambda s, _q: one(s.counters.preemptions)),
    Metric("ramherd_recycles_total", COUNTER, "planned restarts of runs",
           lambda s, _q: one(s.counters.recycles)),
    Metric("ramherd_limit_kills_total", COUNTER, "kernel kills at a job's own memory_limit",
           lambda s, _q: one(s.counters.limit_kills)),
    Metric("ramherd_oom_kills_total", COUNTER, "all other kernel kills; there should be none",
           lambda s, _q: one(s.counters.oom_kills)),
    Metric("ramherd_leftovers_ended_total", COUNTER, "processes that runs left, ended",
           lambda s, _q: one(s.counters.leftovers)),
    Metric("ramherd_level_changes_total", COUNTER, "changes of the level",
           lambda s, _q: one(s.counters.level_changes)),
    Metric("ramherd_alerts_total", COUNTER, "warnings that were given",
           lambda s, _q: one(s.counters.alerts)),
    Metric("ramherd_runs_ended_total", COUNTER, "runs by how they ended",
           lambda s, _q: each("end", s.counters.runs)),
    Metric("ramherd_run_duration_seconds", HISTOGRAM, "how long runs took",
           lambda s, _q: histogram(s.counters.durations)),
    Metric("ramherd_run_peak_bytes", HISTOGRAM, "the most that runs used",
           lambda s, _q: histogram(s.counters.peaks)),
    Metric("ramherd_census_processes", GAUGE, "agents, MCP servers and tools on the machine",
           lambda _s, q: of_census(q, census_processes)),
    Metric("ramherd_census_bytes", GAUGE, "what these hold",
           lambda _s, q: of_census(q, lambda census: one(census.memory_bytes))),
    Metric("ramherd_census_strays", GAUGE, "processes that agents left behind",
           lambda _s, q: of_census(q, lambda census: one(census.strays))),
    Metric("ramherd_supervisor_rss_bytes", GAUGE, "the supervisor's own memory",
           lambda s, _q: one(s.supervisor_rss_bytes)),
    Metric("ramherd_supervisor_cpu_seconds_total", COUNTER, "the supervisor's own CPU time",
           lambda s, _q: one(s.supervisor_cpu_s)),
    Metric("ramherd_supervisor_open_fds", GAUGE, "the supervisor's own open files",
           lambda s, _q: one(s.open_fds)),
    Metric("ramherd_keeper_rss_bytes", GAUGE, "the keeper's own memory",
           lambda s, _q: one(s.keeper_rss_bytes)),
    Metric("ramherd_api_rss_bytes", GAUGE, "the API's own memory",
           lambda _s, q: one(q.api_rss_bytes)),
    Metric("ramherd_start_time_seconds", GAUGE, "when the service started",
           lambda s, _q: one(s.started_s)),
)  # fmt: skip


def render_metrics(status: ServiceStatus, queue: Queue) -> str:
    lines: list[str] = []
    for metric in METRICS:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for suffix, value in metric.samples(status, queue):
            lines.append(f"{metric.name}{suffix} {number(value)}")
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
