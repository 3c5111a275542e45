"""Carrying out what was decided: runs in pens, through the keeper.

It knows each live run and what the keeper said of it; it decides nothing.
"""

import json
import math
import os
import signal
import time
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramherd.act.cleanup import CleanedPen, Cleanup
from ramherd.act.grant_enforcer import GrantEnforcer
from ramherd.act.keeper_client import KeeperClient
from ramherd.act.pens import Fleet, Pen
from ramherd.act.pens.pids_limit import limit_pids
from ramherd.act.pens.polling import signal_procs
from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import IdleProcess, WarmPool, WarmProcess
from ramherd.core.model import Exit, Job, ProcId, Reason, RunEnd, Stopping, Why
from ramherd.core.policies import GrantPolicy, Policy
from ramherd.measure.run_output import read_tail

if TYPE_CHECKING:
    from ramherd.agents import Launch

V8_EXIT_CODE = 134
V8_MESSAGE = b"heap out of memory"
TAIL_BYTES = 1 << 16


class Executor:
    def __init__(
        self,
        fleet: Fleet,
        start_keeper: Callable[[], KeeperClient],
        runs_dir: Path,
        policy: Policy | None = None,
        grants: GrantPolicy | None = None,
    ) -> None:
        self.fleet = fleet
        self.enforcer = GrantEnforcer(grants or GrantPolicy())
        self.runs: dict[str, LiveRun] = {}
        self.started: list[LiveRun] = []
        self._start_keeper = start_keeper
        self.runs_dir = runs_dir
        self._policy = policy or Policy()
        self._sweeper = Cleanup()
        self.warm_pool = WarmPool()
        # What a run has in its environment beside what its job says.
        ours = dict(os.environ)
        self.inherited: Callable[[Job], Mapping[str, str]] = lambda _job: ours
        self.link = self._new_keeper()

    def _new_keeper(self) -> KeeperClient:
        link = self._start_keeper()
        link.ask("fleet", dirs=self.fleet.dirs())
        self.fleet.note_keeper(link.proc_id)
        return link

    def adopt(self, run: LiveRun, grant_bytes: int) -> None:
        """One that an earlier supervisor started. The keeper will say how it stands."""
        self.runs[run.id] = run
        self.enforcer.give(run, grant_bytes, run.started_s)

    def start(self, run: LiveRun, grant_bytes: int, *, resumed: bool) -> IdleProcess | None:
        """The warm process that it takes over, if there is one. What is refused already never
        begins.
        """
        self.runs[run.id] = run
        if run.refused is not None:
            return None
        launch = run.agent_run.launch if run.agent_run is not None else None
        key = self.key_of(run.job, launch) if launch is not None and launch.warm else None
        idle = self.warm_pool.take(key) if key is not None else None
        try:
            run.dir.mkdir(mode=0o700, parents=True)
            stdin = write_stdin(run)
            if idle is not None:
                self._take_over(run, idle, grant_bytes, stdin)
                return idle
            run.pen = self.fleet.add(run.id, run.job.memory_limit_bytes)
            limit_pids(run.pen, self._policy.pids_limit)
            self.enforcer.begin(run, grant_bytes)
        except OSError as error:
            run.refused = (error.errno or 0, f"cannot prepare {error.filename}: {error.strerror}")
            if idle is not None:
                run.pen = None
                self.warm_pool.put(idle)
            return None
        if key is not None:
            most = run.job.brief.reuse if run.job.brief is not None else 0
            run.worker = WarmProcess(key, most, run.started_s)
        self.link.ask(
            "spawn", run=run.id, argv=argv_of(run, resumed=resumed), cwd=run.job.cwd,
            dir=str(run.dir), stdin=stdin, fed=key is not None,
            env=environment(run, resumed=resumed, inherited=self.inherited(run.job)),
            **run.pen.spawn_part(), log=self._log,
        )  # fmt: skip
        return None

    @property
    def _log(self) -> tuple[int, int]:
        return self._policy.log_head_bytes, self._policy.log_ring_bytes

    def key_of(self, job: Job, launch: "Launch") -> Hashable:
        """What two jobs have to agree in to share a process."""
        env = {**self.inherited(job), **launch.env, **job.env}
        reuse = job.brief.reuse if job.brief is not None else 0
        return launch.argv, job.cwd, job.memory_limit_bytes, reuse, frozenset(env.items())

    def _take_over(self, run: LiveRun, idle: IdleProcess, grant_bytes: int, stdin: str) -> None:
        """Another job's process, in its pen. What it uses is given to it in any case: that was not
        free before.
        """
        last = idle.last
        run.home, run.pen, run.first, run.worker = last.home, idle.pen, last.first, idle.worker
        run.taken_from, run.peak_before = last.id, idle.peak_bytes
        run.worker.jobs += 1
        self.enforcer.give(run, max(grant_bytes, idle.used_bytes), run.started_s)
        self.link.ask("pass", run=last.id, to=run.id, dir=str(run.dir), stdin=stdin, log=self._log)

    def feed(self, run: LiveRun, text: str) -> None:
        """More to ask of a warm process."""
        try:
            path = write_file(run.dir / "in.new", text)
        except OSError:
            self.hang_up(run)
        else:
            self.link.ask("feed", run=run.id, stdin=path)

    def hang_up(self, run: LiveRun) -> None:
        """It is asked no more, and ends by itself when it is through."""
        run.hung_up = True
        self.link.ask("hang_up", run=run.id)

    def shelve(self, run: LiveRun, at_s: float) -> IdleProcess:
        """The run is over, its process waits for another."""
        assert run.worker is not None
        assert run.pen is not None
        del self.runs[run.id]
        run.passed_on = True
        peak = max(run.peak_before, run.reading.peak_bytes)
        idle = IdleProcess(run, run.worker, run.pen, at_s, run.reading.used_bytes, peak)
        self.warm_pool.put(idle)
        return idle

    def retire(self, idle: IdleProcess, at_s: float) -> None:
        idle.leaving_s = at_s
        self.link.ask("hang_up", run=idle.last.id)

    def clear_spares(self, at_s: float) -> None:
        """What has left is cleaned like any run."""
        for idle in self.warm_pool.gone(at_s):
            self.link.ask("close", run=idle.last.id)
            self._let_go(idle)

    def hear(self, at_s: float) -> bool:
        """Take in what the keeper said; False when it is gone."""
        messages = self.link.hear()
        for message in messages or ():
            run = self.runs.get(message["run"])
            if run is not None:
                self._take(run, message, at_s)
            elif message["did"] == "exited":
                self.warm_pool.note_exit(message["run"])
        return messages is not None

    def _take(self, run: LiveRun, message: dict[str, Any], at_s: float) -> None:
        match message["did"]:
            case "started":
                run.started = True
                run.first = ProcId(message["pid"], message["start_ticks"])
                if run.pen is not None:
                    run.pen.note_start(run.first)
                self.started.append(run)
                if run.stop is not None:  # it was told before it was there
                    self.ask_to_end(run, at_s)
            case "refused":
                run.refused = (message["errno"], message["what"])
                if run.taken_from:
                    self._abandon(run)
            case "exited":
                self._note_exit(run, message, at_s)
            case "closed":
                self._note_closed(run)

    def _abandon(self, run: LiveRun) -> None:
        """The process that it was to take over, if anything of it lives."""
        if run.pen is not None:
            run.pen.kill()
        self.link.ask("close", run=run.taken_from)
        self._forget(run.taken_from)

    def _note_exit(self, run: LiveRun, message: dict[str, Any], at_s: float) -> None:
        run.exit = Exit(message["code"], message["signal"], at_s)
        run.largest_bytes = message["largest_bytes"]
        run.left = message.get("left", True)  # a keeper of an earlier version does not say
        if run.pen is not None and not run.left:
            run.pen.note_empty()
        if message["closed"]:
            self._note_closed(run)
        if run.agent_run is not None and run.stop is not None:
            self.ask_to_end(run, at_s)  # the tools that its agent has left

    def _note_closed(self, run: LiveRun) -> None:
        run.heap_exhausted = is_heap_exhausted(run)
        run.close_asked = run.output_closed = True

    def replace_keeper(self, at_s: float) -> None:
        """The keeper died, and with it the pipes of its runs: they cannot go on."""
        self.link.kill()
        for run in self.runs.values():
            run.exit = run.exit or read_exit(run.dir, at_s)
            if run.exit is None and run.refused is None:
                reason = Reason(Why.KEEPER_LOST)
                run.stop = run.stop or Stopping(RunEnd.LOST, reason, at_s)
                run.exit = Exit(None, signal.SIGKILL, at_s)
            run.output_closed = True
            self.kill(run, at_s)
        self.warm_pool.note_loss()
        self.link = self._new_keeper()

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        run.stop = stopping
        self.ask_to_end(run, stopping.since_s)

    def clear(self, run: LiveRun, at_s: float) -> None:
        run.clearing_s = at_s
        run.leftovers = self.ask_to_end(run, at_s)

    def ask_to_end(self, run: LiveRun, at_s: float) -> int:
        """TERM, and CONT for who has stopped itself or is held, and would not hear it."""
        if run.pen is None:
            return 0
        self.enforcer.let_go(run)
        reached = send_end(run, run.pen)
        run.pen.signal(signal.SIGCONT)
        run.thaw(at_s)
        return reached

    def kill(self, run: LiveRun, at_s: float) -> None:
        run.killed_s = at_s
        if run.pen is not None:
            run.pen.kill()

    def close_output(self) -> None:
        """Once nothing lives in a pen that could print, its output is complete."""
        for run in self.runs.values():
            if run.exit is not None and run.reading.procs == 0 and not run.close_asked:
                run.close_asked = True
                self.link.ask("close", run=run.id)

    def finish(self, run: LiveRun) -> None:
        del self.runs[run.id]
        self._forget(run.id)
        if run.pen is not None:
            self._sweep(run.home, run.pen)

    def _let_go(self, idle: IdleProcess) -> None:
        self._forget(idle.last.id)
        self._sweep(idle.last.home, idle.pen)

    def _forget(self, run: str) -> None:
        if self.link.is_adoptable:
            self.link.ask("forget", run=run)

    def _sweep(self, home: str, pen: Pen) -> None:
        self._sweeper.sweep(home, pen, self.runs_dir / home / "tmp")

    def grant_fds(self, at_s: float) -> dict[int, LiveRun]:
        """Descriptors that tell when a run is at its grant."""
        return {
            fd: run
            for run in self.runs.values()
            if run.held_since_s is None and not run.is_ending and at_s >= run.muted_until_s
            if run.pen is not None and (fd := run.pen.grant_fd()) is not None
        }

    def muted_for_s(self, at_s: float) -> float:
        """Until somebody is listened to again."""
        waits = (run.muted_until_s - at_s for run in self.runs.values())
        return min((wait for wait in waits if wait > 0), default=math.inf)

    def sweep(self) -> list[CleanedPen]:
        return self._sweeper.advance()

    @property
    def is_occupied(self) -> bool:
        return bool(self.runs or self.warm_pool.all)

    @property
    def is_busy(self) -> bool:
        """Something is on its way out: look again soon."""
        busy = self._sweeper.is_busy or self.warm_pool.is_busy
        return busy or any(run.is_ending or run.is_renewing for run in self.runs.values())

    def shut_down(self, wait_s: float = 10.0) -> list[CleanedPen]:
        """Whatever happened before, nothing is left: pens first, then the keeper, the fleet."""
        deadline = time.monotonic() + wait_s
        for run in list(self.runs.values()):
            run.thaw(deadline)
            kill_all(run.pen, deadline)
            self.finish(run)
        for idle in self.warm_pool.take_all():
            kill_all(idle.pen, deadline)
            self._let_go(idle)
        cleaned = self._sweeper.finish()
        self.enforcer.close()
        self.link.close()
        return cleaned


def environment(
    run: LiveRun, *, resumed: bool, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    return {
        **{name: text for name, text in inherited.items() if name != "RAMHERD_RESUMED"},
        **(run.agent_run.launch.env if run.agent_run is not None else {}),
        **run.job.env,
        "RAMHERD_RUN": run.id,
        "RAMHERD_JOB": run.job.id,
        "RAMHERD_HERD": run.job.herd,
        "RAMHERD_ATTEMPT": str(run.attempt),
        "TMPDIR": str(run.dir / "tmp"),
        **({"RAMHERD_RESUMED": "1"} if resumed else {}),
    }


def send_end(run: LiveRun, pen: Pen) -> int:
    """An agent alone at first: its tools, ended with it, would tell it of their own end, and that
    would be in its history.
    """
    if run.agent_run is not None and run.exit is None and run.first is not None:
        return signal_procs([run.first], run.agent_run.agent.stop_signal)
    return pen.signal(signal.SIGTERM)


def argv_of(run: LiveRun, *, resumed: bool) -> tuple[str, ...]:
    """A job that cannot resume starts over."""
    if run.agent_run is not None:
        return run.agent_run.launch.argv
    return run.job.resume_argv if resumed and run.job.resume_argv else run.job.argv


def write_stdin(run: LiveRun) -> str:
    """A file, not a pipe: of any size, and nobody has to feed it."""
    text = run.agent_run.launch.stdin if run.agent_run is not None else run.job.stdin
    if text is None:
        return ""
    return write_file(run.dir / "in", text)


def write_file(path: Path, text: str) -> str:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def kill_all(pen: Pen | None, deadline: float) -> None:
    while pen is not None and pen.read().procs and time.monotonic() < deadline:
        pen.kill()
        time.sleep(0.01)


def read_exit(run_dir: Path, at_s: float) -> Exit | None:
    """The exit status that the keeper wrote before it died."""
    try:
        status = json.loads((run_dir / "status").read_bytes())
    except FileNotFoundError:
        return None
    return Exit(status["code"], status["signal"], at_s)


def is_heap_exhausted(run: LiveRun) -> bool:
    """V8 aborts with its own message: its heap was full, the machine need not have been."""
    aborted = run.exit is not None and (
        run.exit.signal == signal.SIGABRT or run.exit.code == V8_EXIT_CODE
    )
    return aborted and V8_MESSAGE in read_tail(run.dir, "err", TAIL_BYTES)
