"""The counters of the service: sums, and nothing that grows with the jobs."""

from dataclasses import dataclass, field

from ramherd.act.run import LiveRun
from ramherd.core.model import Event, RunEnd
from ramherd.core.service_status import Counters, count
from ramherd.supervisor.herd_counters import HerdCounters


@dataclass
class ServiceCounters:
    """`totals` are the counters of the loop; `counters` is what the API reports."""

    totals: HerdCounters = field(default_factory=HerdCounters)
    counters: Counters = field(default_factory=Counters)

    def add_run(self, run: LiveRun, end: RunEnd, at_s: float) -> None:
        counters, totals = self.counters, self.totals
        count(counters.runs, end.value)
        counters.durations.add(at_s - run.started_s)
        counters.peaks.add(run.reading.peak_bytes)
        counters.preemptions, counters.recycles = totals.preempted, totals.recycled
        counters.limit_kills, counters.oom_kills = totals.limit_kills, totals.oom_kills

    def add_event(self, event: Event) -> None:
        counters, totals, why = self.counters, self.totals, event.reason.why.value
        counters.leftovers, counters.level_changes = totals.leftovers_ended, totals.level_changes
        if event.kind == "run_started":
            counters.admissions += 1
        elif event.kind == "run_held":
            count(counters.holds, why)
        elif event.kind == "start_waits":
            count(counters.waits, why)
