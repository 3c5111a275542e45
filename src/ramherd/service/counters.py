"""What the service counts while it runs: sums, and nothing that grows with the jobs."""

from dataclasses import dataclass, field

from ramherd.act.run import LiveRun
from ramherd.core.model import Event, Reason, RunEnd, Why
from ramherd.core.service_status import Counters, count
from ramherd.supervisor.counters import HerdCounters, JobCounters


class Forgotten(dict[str, JobCounters]):
    """A place for what a herd would remember of each job; the store does that here."""

    def __missing__(self, _job: str) -> JobCounters:
        return JobCounters(Reason(Why.SUBMITTED))


@dataclass
class ServiceCounters(HerdCounters):
    jobs: dict[str, JobCounters] = field(default_factory=Forgotten)
    counters: Counters = field(default_factory=Counters)

    def add_run(self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float) -> None:
        super().add_run(run, end, reason, at_s)
        self.holds.clear()
        counters = self.counters
        count(counters.runs, end.value)
        counters.durations.add(at_s - run.started_s)
        counters.peaks.add(run.reading.peak_bytes)
        counters.preemptions, counters.recycles = self.preempted, self.recycled
        counters.limit_kills, counters.oom_kills = self.limit_kills, self.oom_kills

    def note(self, event: Event) -> None:
        counters, why = self.counters, event.reason.why.value
        counters.leftovers, counters.level_changes = self.leftovers_ended, self.level_changes
        if event.kind == "run_started":
            counters.admissions += 1
        elif event.kind == "run_held":
            count(counters.holds, why)
        elif event.kind == "start_waits":
            count(counters.waits, why)
