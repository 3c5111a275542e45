"""Alerts of the service: once a second it looks for values that near their limits."""

from dataclasses import dataclass, field

from ramherd.act.alert_commands import AlertCommands
from ramherd.act.run import LiveRun
from ramherd.decide.alerts import AlertPolicy, Standing, Told, next_alerts
from ramherd.decide.governor.leaks import find_leak
from ramherd.supervisor.loop import Loop
from ramherd.supervisor.memory_governor import MemoryGovernor

CHECK_EVERY_S = 1.0


@dataclass
class Alerts:
    commands: AlertCommands
    told: Told = field(default_factory=Told)
    _checked_s: float = float("-inf")

    def check(self, loop: Loop, at_s: float) -> None:
        if at_s - self._checked_s < CHECK_EVERY_S:
            return
        self._checked_s = at_s
        memory, live = loop.memory, loop.executor.runs
        runs = [standing_of(run, memory) for run in live.values() if not run.is_ending]
        self.told, alerts = next_alerts(
            runs, memory.fleet_used, memory.lease.budget_bytes, self.told, AlertPolicy()
        )
        for alert in alerts:
            if alert.run in live:
                loop.events.emit_run("alert", alert.reason, live[alert.run])
            else:
                loop.events.emit_herd("alert", alert.reason)
        self.commands.reap()


def standing_of(run: LiveRun, memory: MemoryGovernor) -> Standing:
    watch = memory.watches.watch.get(run.id)
    leak = find_leak(watch.points) if watch is not None else None
    slope = leak.slope_bytes_per_s if leak is not None else 0.0
    return Standing(run.id, run.reading.used_bytes, run.job.memory_limit_bytes, slope)
