"""Starts the `on_done` commands of jobs, and in the service those of herds, a few at a time.

Each runs in a pen of its own, for a minute at most. A command that fails is reported, and changes
nothing: neither the state of its job nor that of others.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramherd.act.executor import Executor
from ramherd.core.errors import StoreError
from ramherd.core.model import Job, Reason, Why
from ramherd.core.record import replace
from ramherd.core.units import GIB
from ramherd.decide.end_commands import describe_herd_end, describe_job_end
from ramherd.jobs.schema import SHELL
from ramherd.store.herds import SERVICE, add_pen
from ramherd.store.on_done import (
    DueCommand,
    drop_due,
    is_herd_due,
    read_due_jobs,
    read_due_of_service,
    read_first_job,
    read_herd_command,
)
from ramherd.store.protocol import Store
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.job_states import JobStates
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from ramherd.act.user_command import UserCommand

MOST_AT_ONCE = 4
LIMIT_BYTES = GIB
# At most this many jobs of a herd are described to its command: at the end of a `ramherd run`, and
# in the service, whose loop waits meanwhile (0.05 ms each).
MOST_JOBS = 10_000
MOST_JOBS_OF_SERVICE = 200


@dataclass(frozen=True, slots=True)
class Prepared:
    """`job` is the job that events name; None for a herd."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: bytes
    job: Job | None


@dataclass
class OnDoneQueue:
    executor: Executor
    jobs: JobStates
    events: EventLog
    # By the name of the pen.
    _running: "dict[str, tuple[UserCommand, DueCommand, Job | None]]" = field(default_factory=dict)
    # Whether more commands are due than may run at once, or one waits for a worktree.
    _is_behind: bool = True

    @property
    def is_busy(self) -> bool:
        is_due = self.jobs.has_ended or self._is_behind
        # A store that cannot be read does not delay the end of a herd: the commands stay due.
        return bool(self._running) or (is_due and not self.events.writes.trouble)

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(fd for command, _due, _job in self._running.values() for fd in command.fds)

    def advance(self, at_s: float, interrupts: int) -> None:
        """Called after a commit: the ends of jobs are in the store."""
        if interrupts:
            # Commands that have not started stay due, for `run --resume`.
            self.close()
            self.jobs.has_ended = self._is_behind = False
            return
        self._receive(at_s)
        if self.jobs.has_ended or self._is_behind:
            with suppress(StoreError):  # the next step tries again
                self._start_due(at_s)

    def _receive(self, at_s: float) -> None:
        for name, (command, due, job) in list(self._running.items()):
            why = command.receive(at_s)
            if why is None:
                continue
            self._forget(name)
            if why:
                self._report(due, job, why)

    def _report(self, due: DueCommand, job: Job | None, why: str) -> None:
        reason = Reason(Why.ON_DONE_FAILED, what=why)
        if job is not None:
            self.events.emit_job("on_done_failed", reason, job)
        else:
            what = f"herd {due.herd}: {why}"
            self.events.emit_herd("on_done_failed", Reason(Why.ON_DONE_FAILED, what=what))

    def _start_due(self, at_s: float) -> None:
        writes, herd = self.events.writes, self.events.herd
        self._is_behind = True
        free = MOST_AT_ONCE - len(self._running)
        if not free or not writes.commit():
            return
        self.jobs.has_ended = False
        store, most = writes.store, free + 1
        if herd == SERVICE:
            due = read_due_of_service(store, most)
        else:
            due = read_due_jobs(store, herd, most)
        for one in due[:free]:
            self._start(one, at_s)
        self._is_behind = len(due) > free

    def _start(self, due: DueCommand, at_s: float) -> None:
        """Removes the command from the store, then starts it."""
        from ramherd.act.user_command import UserCommand, open_input  # noqa: PLC0415 - subprocess

        name, writes, stdin = new_id(), self.events.writes, -1
        try:
            found = self._prepare(writes.store, due)
            stdin = open_input(self.executor.runs_dir.parent, name, found.stdin)
            pen = self.executor.add_pen(name, LIMIT_BYTES)
        except OSError as error:
            self.events.record(drop_due, due)
            self._report(due, None, f"cannot be started: {error.strerror}")
            close_fd(stdin)
            return
        self.events.record(add_pen, name, self.events.herd, name, pen.record())
        self.events.record(drop_due, due)
        try:
            if not writes.commit():
                raise OSError(0, f"cannot be recorded: {writes.trouble}")
            command = UserCommand(
                found.argv, found.env, at_s, cwd=found.cwd, stdin=stdin, pen=pen
            )  # fmt: skip
            self._running[name] = command, due, found.job
        except OSError as error:
            self.executor.remove_pen(name, pen)
            self._report(due, found.job, f"cannot be started: {error.strerror}")
        finally:
            close_fd(stdin)

    def _prepare(self, store: Store, due: DueCommand) -> Prepared:
        from ramherd.store.listing import read_job  # noqa: PLC0415 - with the first command

        if due.job:
            job, info = self.jobs[due.job].job, read_job(store, due.job) or {}
            env = {**self.executor.environments.read(job), **describe_job_end(info)}
            return Prepared(job.on_done, env, job.cwd, dump(info), job)
        command, first = read_herd_command(store, due.herd), read_first_job(store, due.herd)
        if command is None or first is None:
            raise OSError(0, "its herd is gone")
        # The part that all jobs of the herd inherit.
        job = replace(self.jobs[first].job, env={}, env_at=None)
        info = describe_herd(store, due.herd, MOST_JOBS_OF_SERVICE)
        code = 0 if set(info["counts"]) <= {"done"} else 1
        env = {**self.executor.environments.read(job), **describe_herd_end(info, code)}
        return Prepared((SHELL, "-c", command), env, job.cwd, dump(info), None)

    def _forget(self, name: str) -> None:
        command, _due, _job = self._running.pop(name)
        if command.pen is not None:
            self.executor.remove_pen(name, command.pen)

    def close(self) -> None:
        """The supervisor ends, and ends the commands."""
        for name, (command, _due, _job) in list(self._running.items()):
            command.kill()
            self._forget(name)


def close_fd(fd: int) -> None:
    if fd >= 0:
        os.close(fd)


def dump(info: Mapping[str, Any]) -> bytes:
    return json.dumps(info).encode() + b"\n"


def describe_herd(store: Store, herd: str, most: int = MOST_JOBS) -> dict[str, Any]:
    """The herd as the API shows it, with its first jobs."""
    from ramherd.store.listing import list_jobs, read_herd  # noqa: PLC0415 - with the first command

    info = read_herd(store, herd) or {"herd": herd, "counts": {}}
    return {**info, "jobs": list_jobs(store, herd=herd, most=most, runs=True)}


def run_herd_command(
    store: Store, state: Path, herd: str, env: Mapping[str, str],
    *, exit_code: int, is_interrupted: Callable[[], bool],
) -> str:  # fmt: skip
    """Runs the `on_done` command of a `ramherd run` at its end. Returns why it failed, or ""."""
    from ramherd.act.user_command import UserCommand, open_input  # noqa: PLC0415 - subprocess

    if not is_herd_due(store, herd) or (line := read_herd_command(store, herd)) is None:
        return ""
    info = describe_herd(store, herd)
    drop_due(store, DueCommand(herd, ""))
    store.commit()
    stdin = open_input(state, herd, dump(info))
    try:
        told = {**env, **describe_herd_end(info, exit_code)}
        command = UserCommand(
            (SHELL, "-c", line), told, time.monotonic(), stdin=stdin, is_shown=True
        )  # fmt: skip
    finally:
        close_fd(stdin)
    while (why := command.receive(time.monotonic())) is None:
        if is_interrupted():
            command.kill()
            return "interrupted"
        time.sleep(0.02)
    return why
