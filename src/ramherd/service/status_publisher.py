"""The state of the service, written once a second for the API to read, and for the record of its
memory.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from ramherd import __version__
from ramherd.act.run import LiveRun
from ramherd.core.service_status import RunStatus, ServiceStatus
from ramherd.decide.budget import largest_budget_bytes
from ramherd.service.alerts import standing_of
from ramherd.service.history_recorder import HistoryRecorder
from ramherd.service.service_loop import Service
from ramherd.supervisor.memory_governor import MemoryGovernor
from ramherd.system.files import write_json
from ramherd.system.procfs import list_own_descriptors, read_rss_bytes

EVERY_S = 1.0


@dataclass
class StatusPublisher:
    path: Path
    started_s: float = field(default_factory=time.time)
    history: HistoryRecorder = field(default_factory=HistoryRecorder)
    _published_s: float = float("-inf")

    def restore(self, runtime: Path) -> bool:
        """The runtime directory may have changed. False: the file is written each second anyway."""
        self.path = runtime / self.path.name
        return False

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def __call__(self, service: Service, at_s: float) -> None:
        if at_s - self._published_s < EVERY_S:
            return
        self._published_s = at_s
        status = self.describe(service, at_s)
        try:
            write_json(str(self.path), status.as_json())
        except OSError:  # a full disk: readers see how old the last status is
            pass
        self.history.record(status, service.loop.events, at_s)

    def describe(self, service: Service, at_s: float) -> ServiceStatus:
        loop, times = service.loop, os.times()
        memory, machine = loop.memory, loop.memory.machine
        runs = [run for run in loop.executor.runs.values() if not loop.runs.is_held_back(run)]
        return ServiceStatus(
            at_s=time.time(),
            started_s=self.started_s,
            version=__version__,
            pid=os.getpid(),
            pen=loop.executor.fleet.kind,
            level=memory.history.level.value,
            draining=service.leaving,
            budget_bytes=memory.lease.budget_bytes,
            largest_budget_bytes=largest_budget_bytes(machine, memory.policy),
            leased_bytes=memory.lease.lease_bytes,
            granted_bytes=sum(run.grant.grant_bytes for run in runs),
            used_bytes=memory.fleet_used,
            residue_bytes=loop.counters.residue_bytes,
            available_bytes=machine.available_bytes,
            total_bytes=machine.total_bytes,
            waits_for=memory.waits_for.as_json() if memory.waits_for is not None else None,
            supervisor_rss_bytes=read_rss_bytes(os.getpid()),
            supervisor_cpu_s=round(times.user + times.system, 3),
            keeper_rss_bytes=read_rss_bytes(loop.executor.keeper.proc_id.pid),
            open_fds=len(list_own_descriptors()),
            runs=tuple(describe_run(run, memory, at_s) for run in runs),
            counters=service.counters.counters,
        )


def describe_run(run: LiveRun, memory: MemoryGovernor, at_s: float) -> RunStatus:
    return RunStatus(
        run=run.id,
        job=run.job.id,
        name=run.job.name,
        attempt=run.attempt,
        used_bytes=run.reading.used_bytes,
        peak_bytes=run.reading.peak_bytes,
        procs=run.reading.procs,
        ran_s=round(at_s - run.started_s, 1),
        grant_bytes=run.grant.grant_bytes,
        held=run.frozen_s is not None,
        held_s=round(at_s - run.frozen_s, 1) if run.frozen_s is not None else None,
        ending=run.is_ending,
        doing=run.agent_run.doing if run.agent_run is not None else "",
        leak_bytes_per_s=standing_of(run, memory).slope_bytes_per_s,
        limit_bytes=run.job.memory_limit_bytes,
    )
