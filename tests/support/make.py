"""Values to decide about: each has sensible numbers, and a test names those that matter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ramherd.core.model import (
    Exit,
    Job,
    JobState,
    JobStatus,
    Machine,
    PenReading,
    Reason,
    Refusal,
    RunEnd,
    RunView,
    Snapshot,
    Stopping,
    Why,
)
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Clearing, Ended, Output, Phase, Running
from ramherd.core.units import GIB, MIB

HERD = "HERD"
# 8 GiB for us (the share is 0.5 below), 2 GiB used by others.
MACHINE = Machine(total_bytes=16 * GIB, available_bytes=14 * GIB)
POLICY = Policy(
    budget_share=0.5, grace_s=10.0, leftover_grace_s=2.0, kill_again_s=1.0, give_up_s=30.0,
    retry_first_s=1.0, retry_max_s=60.0, max_lost=3, preempt_grace_s=2.0,
    fleet_slack_bytes=256 * MIB, fleet_mark_bytes=64 * MIB,
)  # fmt: skip


def policy(**changes: Any) -> Policy:
    return POLICY._replace(**changes)


def job(name: str = "a", *, seq: int = 1, memory: int = GIB, **changes: Any) -> Job:
    return Job(
        id=f"id-{name}", herd=HERD, name=name, seq=seq, argv=("true",), cwd="/",
        memory_bytes=memory, **changes,
    )  # fmt: skip


def status(of: Job | str = "a", state: JobState = JobState.QUEUED, **changes: Any) -> JobStatus:
    of = job(of) if isinstance(of, str) else of
    return JobStatus(of, state, changes.pop("reason", Reason(Why.SUBMITTED)), **changes)


def run(
    name: str = "r", of: Job | None = None, *, used: int = 0, procs: int = 1, peak: int = 0,
    started_s: float = 0.0, **changes: Any,
) -> RunView:  # fmt: skip
    of, pen = of or job(name), changes.pop("pen", PenReading(used, max(used, peak), procs))
    known = {key: changes.pop(key) for key in PHASE_KEYS if key in changes}
    return RunView(name, of, 1, started_s, pen, phase_of(**known), **changes)


PHASE_KEYS = (
    "exit", "stop", "refused", "clearing_s", "killed_s", "output_closed", "heap_exhausted"
)  # fmt: skip


def phase_of(
    exit: Exit | None = None, stop: Stopping | None = None,  # noqa: A002
    refused: Sequence[Any] | None = None, clearing_s: float | None = None,
    killed_s: float | None = None, *, output_closed: bool = False, heap_exhausted: bool = False,
) -> Phase:  # fmt: skip
    """The phase in which this is known."""
    if refused is not None:
        return Ended(stop=stop, refused=Refusal(*refused))
    if exit is not None:
        output = Output.CLOSED if output_closed else Output.OPEN
        return Clearing(
            exit, stop, since_s=clearing_s, killed_s=killed_s, output=output,
            heap_exhausted=heap_exhausted,
        )  # fmt: skip
    return replace(stop, killed_s=killed_s) if stop is not None else Running()


def snapshot(
    *runs: RunView, queue: Sequence[JobStatus] = (), at_s: float = 100.0,
    machine: Machine = MACHINE, fleet: int = 0, interrupts: int = 0,
) -> Snapshot:  # fmt: skip
    delayed = [status for status in queue if status.not_before_s]
    return Snapshot(at_s, machine, runs, queue, fleet, interrupts, delayed)


def exited(code: int = 0) -> Exit:
    return Exit(code, None, 99.0)


def killed_by(number: int) -> Exit:
    return Exit(None, number, 99.0)


def stopping(end: RunEnd, since_s: float = 100.0, why: Why = Why.INTERRUPTED) -> Stopping:
    return Stopping(end, Reason(why, signals=1), since_s)
