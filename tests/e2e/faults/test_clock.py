"""The wall clock is set, the supervisor is stopped: what a run has left of its timeout."""

import json
import os
import signal
import time
from pathlib import Path

from e2e.faults.conftest import Losses
from integration.conftest import Ramherd, await_, need, ours
from integration.service.conftest import Service

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
# Longer than the longest step that counts.
STOPPED_S = 6.0


def start_at(service: Service, wall_clock: str) -> None:
    """The service again, on a machine whose wall clock was set; the monotonic one never is."""
    need("faketime", "faketime")
    env = service.ramherd.env
    service.ramherd.env = {
        **env, "LD_PRELOAD": str(FAKETIME), "FAKETIME": wall_clock,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    try:
        service.start()
    finally:
        service.ramherd.env = env


def test_a_clock_that_jumps_forward_times_nobody_out(service: Service, losses: Losses) -> None:
    """A day later by the wall clock, the next service adopts a run of two seconds."""
    herd = service.submit({"name": "a", "command": "sleep 4", "timeout": "60s"})
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.await_state("a", "running")
    service.kill()
    start_at(service, "+1d")
    service.client.wait(herd)
    job = service.job("a")
    assert (job["state"], len(job["runs"])) == ("done", 1), job
    losses("the wall clock jumps a day before adoption", timeouts=int(job["state"] != "done"))


def test_a_clock_that_jumps_back_forgets_no_used_time(service: Service, losses: Losses) -> None:
    """The run has its four seconds, not four more for each service."""
    service.submit({"name": "a", "command": "sleep 300", "timeout": "4s"})
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.await_state("a", "running")
    began = time.monotonic()
    service.kill()
    await_(lambda: time.monotonic() - began > 3.0, "most of its time is used")
    start_at(service, "-1d")
    service.await_state("a", "failed")
    ran_s = service.job("a")["reason"]["ran_s"]
    assert 4.0 <= ran_s < 6.5, ran_s
    losses("the wall clock jumps back before adoption", forgotten_s=int(ran_s < 4.0))


def test_a_stopped_service_times_nobody_out(service: Service, losses: Losses) -> None:
    """As on a machine that sleeps: the time between two steps does not count."""
    herd = service.submit({"name": "a", "command": "sleep 8", "timeout": "5s"})
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    service.await_state("a", "running")
    stop_for(service.process.pid, STOPPED_S)
    service.client.wait(herd)
    job = service.job("a")
    losses("the service is stopped for 6 s", timeouts=int(job["state"] != "done"))


def test_a_stopped_herd_times_nobody_out(ramherd: Ramherd, losses: Losses) -> None:
    """The same without a service."""
    job = {"name": "a", "command": "sleep 8", "timeout": "5s", "cwd": "/"}
    herd = ramherd.start("run", "-", "--json", "--pen", ramherd.pen, stdin=json.dumps(job) + "\n")
    await_(lambda: ours("RAMHERD_RUN"), "it runs")
    stop_for(herd.process.pid, STOPPED_S)
    assert herd.wait() == 0, herd.err.read_text()
    losses("ramherd run is stopped for 6 s", timeouts=json.loads(herd.out.read_text())["failed"])


def stop_for(pid: int, for_s: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    until = time.monotonic() + for_s
    await_(lambda: time.monotonic() >= until, "it is stopped for that long")
    os.kill(pid, signal.SIGCONT)
