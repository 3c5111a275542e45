"""Alerts: what nears its limit is looked for once a second, and `on_alert`, the user's
command, is started for each. Nobody waits for it.
"""

import json
import os
import time
from dataclasses import dataclass, field

from ramherd.act.run import LiveRun
from ramherd.act.user_command import UserCommand
from ramherd.core.model import Event
from ramherd.decide.alerts import AlertPolicy, Standing, Told, next_alerts
from ramherd.decide.governor.leaks import find_leak
from ramherd.jobs.schema import SHELL
from ramherd.service.service_counters import ServiceCounters
from ramherd.supervisor.loop import Loop
from ramherd.supervisor.memory_governor import MemoryGovernor

MOST_AT_ONCE = 4
CHECK_EVERY_S = 1.0


@dataclass
class AlertCommands:
    """The event stands in RAMHERD_ALERT, as JSON. What takes longer than a minute is ended."""

    command: str | None
    missed: int = 0
    _running: list[UserCommand] = field(default_factory=list)

    def start(self, event: Event) -> None:
        self.reap()
        if not self.command:
            return
        if len(self._running) >= MOST_AT_ONCE:
            self.missed += 1
            return
        said = {
            "kind": event.kind, "at_s": event.at_s, "herd": event.herd, "job": event.job,
            "run": event.run, "reason": event.reason.as_json(),
        }  # fmt: skip
        env = {**os.environ, "RAMHERD_ALERT": json.dumps(said)}
        try:
            command = UserCommand(
                (SHELL, "-c", self.command), env, time.monotonic(), is_shown=True
            )  # fmt: skip
        except OSError:  # no memory for it: the event itself is in the store
            self.missed += 1
            return
        self._running.append(command)

    def reap(self) -> None:
        at_s = time.monotonic()
        self._running = [one for one in self._running if one.receive(at_s) is None]

    def close(self) -> None:
        for command in self._running:
            command.kill()
        self._running = []


@dataclass
class Alerts:
    commands: AlertCommands
    told: Told = field(default_factory=Told)
    _checked_s: float = float("-inf")

    def check(self, loop: Loop, counters: ServiceCounters, at_s: float) -> None:
        if at_s - self._checked_s < CHECK_EVERY_S:
            return
        self._checked_s = at_s
        memory, live = loop.memory, loop.executor.runs
        runs = [standing_of(run, memory) for run in live.values() if not run.is_ending]
        self.told, alerts = next_alerts(
            runs, memory.fleet_used, memory.lease.budget_bytes, self.told, AlertPolicy()
        )
        for alert in alerts:
            counters.counters.alerts += 1
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
