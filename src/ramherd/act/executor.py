"""Carries out decisions: runs in pens, through the keeper.

It has each live run and the keeper's reports about it; it decides nothing.
"""

import math
import signal
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramherd.act.cleanup import CleanedPen, Cleanup
from ramherd.act.environments import Environments, HerdEnvironments, Layer, one_environment
from ramherd.act.grant_enforcer import GrantEnforcer
from ramherd.act.keeper_client import KeeperClient, NoKeeper
from ramherd.act.pens import Pen
from ramherd.act.pens.cgroup import limit_pids
from ramherd.act.pens.selection import Fleet
from ramherd.act.run import LiveRun
from ramherd.act.run_directory import make_run_directory, remove_run_directory, write_file
from ramherd.act.warm_pool import IdleProcess, WarmPool, WarmProcess
from ramherd.config.paths import runtime_path
from ramherd.core.model import Exit, Job, ProcId, Reason, Refusal, RunEnd, Stopping, Why
from ramherd.core.policies import GrantPolicy, Policy
from ramherd.decide.run_end import is_own_failure
from ramherd.measure.run_output import read_tail
from ramherd.store.inputs import input_path
from ramherd.system.environ import (
    decode_bytes,
    merge_layers,
    parse_words,
    read_all,
    read_own_environ,
)
from ramherd.system.files import parse_record
from ramherd.system.pidfd import signal_processes

if TYPE_CHECKING:
    from ramherd.agents import Launch

# A CLI finds the token for its MCP servers here (`agents/mcp_links.py`).
MCP_TOKEN = "RAMHERD_MCP_TOKEN"  # noqa: S105 - the name of a variable
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
        # Runs whose start the keeper has reported since this list was last read.
        self.started: list[LiveRun] = []
        self._start_keeper = start_keeper
        self.runs_dir = runs_dir
        self._policy = policy or Policy()
        self._cleanup = Cleanup()
        self.warm_pool = WarmPool()
        # The warm processes that runs took over in this step.
        self._taken: dict[str, IdleProcess] = {}
        # The tokens of processes that use MCP servers, by the first run of each.
        self._mcp_tokens: dict[str, str] = {}
        self.environments: Environments | HerdEnvironments = one_environment(read_own_environ())
        # Whether the keeper reported something in this step; whether it has stopped answering.
        self.is_keeper_heard = False
        self.is_keeper_hanging = False
        # How much the logs of all runs may grow: a new keeper gets the same limit.
        self._log_growth_bytes: int | None = None
        # Why the keeper could not be started, until `pop_keeper_failure`.
        self._keeper_failure = ""
        self.keeper: KeeperClient | NoKeeper = NoKeeper()
        self.start_keeper()

    def start_keeper(self) -> None:
        """The keeper's first answer shows that it works."""
        try:
            self.keeper = self._start_keeper()
        except OSError as error:
            self._keeper_failure = describe_os_error(error)
            return
        self.keeper.send("fleet", dirs=self.fleet.dirs())
        self.fleet.set_keeper(self.keeper.proc_id)
        if self._log_growth_bytes is not None:
            self.keeper.send("log_growth", bytes=self._log_growth_bytes)
        self.keeper.send("ping")

    @property
    def has_keeper(self) -> bool:
        return not isinstance(self.keeper, NoKeeper)

    def pop_keeper_failure(self) -> str:
        """Why the keeper could not be started since the last call, or ""."""
        failure, self._keeper_failure = self._keeper_failure, ""
        return failure

    def set_log_growth(self, growth_bytes: int) -> None:
        self._log_growth_bytes = growth_bytes
        self.keeper.send("log_growth", bytes=growth_bytes)

    def adopt(self, run: LiveRun, grant_bytes: int) -> None:
        """Adopts a run that an earlier supervisor started. The keeper will report its state."""
        self.runs[run.id] = run
        self.enforcer.set_grant(run, grant_bytes, run.started_s)

    def start(self, run: LiveRun, grant_bytes: int, *, resumed: bool) -> IdleProcess | None:
        """Returns the warm process that the run takes over, if there is one. A run that was refused
        never begins. OSError: the run could not be prepared, and nothing of it is left.
        """
        if run.refused is not None:
            self.runs[run.id] = run
            return None
        launch = run.agent_run.launch if run.agent_run is not None else None
        key = self.key_of(run.job, launch) if launch is not None and launch.warm else None
        idle = self.warm_pool.pop(key) if key is not None else None
        try:
            stdin = make_run_directory(run.dir, stdin_of(run)) or large_stdin_of(run, self.state)
            if idle is not None:
                self._reuse(run, idle, grant_bytes, stdin)
                self.runs[run.id] = run
                return idle
            pen = self._make_pen(run, grant_bytes)
            token = self._grant_servers(run)
        except OSError as error:
            self._undo_preparation(run, idle)
            if not is_own_failure(error.errno or 0):
                raise
            run.refuse(Refusal(error.errno or 0, self.describe_failure(error)), run.started_s)
            self.runs[run.id] = run
            return None
        self.runs[run.id] = run
        if run.agent_run is not None:
            # A large prompt that is on disk need not be in memory.
            run.agent_run.launch = replace(run.agent_run.launch, stdin="")
        if key is not None:
            most = run.job.brief.reuse if run.job.brief is not None else 0
            run.serve_many(WarmProcess(key, most, run.started_s))
        self.keeper.send(
            "spawn", run=run.id, cwd=run.job.cwd, dir=str(run.dir), stdin=stdin,
            fed=key is not None, **self._program(run, token, resumed=resumed),
            **pen.spawn_part(), log=self._log,
        )  # fmt: skip
        return None

    def add_pen(self, name: str, limit_bytes: int) -> Pen:
        """For a program of our own, which is not a run."""
        pen = self.fleet.add(name, limit_bytes)
        limit_pids(pen, self._policy.pids_limit)
        return pen

    def remove_pen(self, name: str, pen: Pen) -> None:
        """For a program of our own that has ended: `clean_up` reports when the pen is removed."""
        self._clean_up(name, pen)

    def _make_pen(self, run: LiveRun, grant_bytes: int) -> Pen:
        pen = self.fleet.add(run.id, run.job.memory_limit_bytes)
        run.enter_pen(pen)
        limit_pids(pen, self._policy.pids_limit)
        self.enforcer.set_first_grant(run, grant_bytes)
        return pen

    def _grant_servers(self, run: LiveRun) -> str:
        """Returns the token of the run's process for its MCP servers, or "" if it has none."""
        launch = run.agent_run.launch if run.agent_run is not None else None
        if launch is None or not (launch.servers or launch.files):
            return ""
        from ramherd.act.mcp_access import grant_servers  # noqa: PLC0415 - few herds need it

        if token := grant_servers(runtime_path(), run):
            self._mcp_tokens[run.home] = token
        return token

    def _revoke_servers(self, run: LiveRun) -> None:
        """The process has ended. The token of an adopted run is not known here."""
        if run.job.brief is None or not run.job.brief.mcp:
            return
        from ramherd.act.mcp_access import revoke_servers  # noqa: PLC0415 - see above

        revoke_servers(runtime_path(), run.home, self._mcp_tokens.pop(run.home, ""))

    def _undo_preparation(self, run: LiveRun, idle: IdleProcess | None) -> None:
        if idle is not None:
            self.warm_pool.add(idle)
        elif run.pen is not None:
            run.pen.remove(0.0)
        run.leave_pen()
        remove_run_directory(run.dir)

    def describe_failure(self, error: OSError) -> str:
        """Which of our directories could not be used, without the name of the run."""
        cgroups = [path for path in self.fleet.dirs() if str(error.filename).startswith(path)]
        return f"cannot prepare a run in {[*cgroups, self.runs_dir][0]}: {error.strerror}"

    def _program(self, run: LiveRun, token: str, *, resumed: bool) -> dict[str, Any]:
        """Large values are not read here: the keeper's child reads the file."""
        field, argv = argv_of(run, resumed=resumed)
        file = str(input_path(self.state, run.job.id, field)) if field in run.job.large else ""
        inherited, own = self.environments.layers(run.job)
        env = layers_of(run, inherited, own, resumed=resumed, token=token)
        if self.keeper.takes_files:
            return {"argv": argv, "argv_file": file, "env": env}
        words = tuple(map(decode_bytes, parse_words(read_all(file)))) if file else argv
        flat = {decode_bytes(key): decode_bytes(text) for key, text in merge_layers(env).items()}
        return {"argv": words, "env": flat}

    @property
    def state(self) -> Path:
        return self.runs_dir.parent

    @property
    def _log(self) -> tuple[int, int]:
        return self._policy.log_head_bytes, self._policy.log_ring_bytes

    def key_of(self, job: Job, launch: "Launch") -> Hashable:
        """The key that two jobs must have in common to share a process."""
        env = self.environments.read(job)
        reuse = job.brief.reuse if job.brief is not None else 0
        variables = frozenset(launch.env.items()), frozenset(env.items())
        return launch.argv, job.cwd, job.memory_limit_bytes, reuse, variables

    def _reuse(self, run: LiveRun, idle: IdleProcess, grant_bytes: int, stdin: str) -> None:
        """Takes over another job's process, in its pen. The grant is at least the memory that the
        process uses: that memory was not free before.
        """
        self._taken = {run.id: idle, **self._taken}
        run.reuse(idle)
        self.enforcer.set_grant(run, max(grant_bytes, idle.used_bytes), run.started_s)
        idle.process.jobs += 1
        self.keeper.send(
            "pass", run=idle.last.id, to=run.id, dir=str(run.dir), stdin=stdin, log=self._log
        )

    def withdraw(self, run: LiveRun) -> bool:
        """Undoes the start of a run that was not sent to the keeper yet. Returns whether it did."""
        if not self.keeper.withdraw(run.id):
            return False
        del self.runs[run.id]
        if (idle := self._taken.pop(run.id, None)) is not None:
            run.leave_pen()
            remove_run_directory(run.dir)
            idle.process.jobs -= 1
            self.warm_pool.add(idle)
        elif run.pen is not None:
            self._cleanup.add(run.home, run.pen, run.dir)
            self._revoke_servers(run)
        return True

    def release_starts(self) -> None:
        """The store has the new runs: the keeper may start them."""
        self._taken.clear()
        self.keeper.release()

    def send_stdin(self, run: LiveRun, text: str) -> None:
        """Sends more input to a warm process."""
        try:
            path = write_file(run.dir / "in.new", text)
        except OSError:
            self.close_stdin(run)
        else:
            self.keeper.send("feed", run=run.id, stdin=path)

    def close_stdin(self, run: LiveRun) -> None:
        """The run's warm process gets no other job, and exits when its work is done."""
        run.close_warm()
        self.keeper.send("hang_up", run=run.id)

    def make_idle(self, run: LiveRun, at_s: float) -> IdleProcess:
        """The run has ended; its process waits for another run."""
        assert run.warm is not None
        assert run.pen is not None
        del self.runs[run.id]
        run.end(at_s)
        peak = max(run.warm.peak_before, run.reading.peak_bytes)
        idle = IdleProcess(run, run.warm.process, run.pen, at_s, run.reading.used_bytes, peak)
        self.warm_pool.add(idle)
        return idle

    def retire(self, idle: IdleProcess, at_s: float) -> None:
        idle.leaving_s = at_s
        self.keeper.send("hang_up", run=idle.last.id)

    def remove_exited_processes(self, at_s: float) -> None:
        """The pens of warm processes that have exited are cleaned up like those of runs."""
        for idle in self.warm_pool.pop_gone(at_s):
            self.keeper.send("close", run=idle.last.id)
            self._remove_idle(idle)

    def receive(self, at_s: float) -> bool:
        """Reads the keeper's reports; False when the keeper is gone."""
        messages = self.keeper.receive()
        if messages is None and not self.keeper.has_answered:
            self._drop_failed_keeper()
            messages = []
        self.is_keeper_heard = bool(messages)
        for message in messages or ():
            run = self.runs.get(message["run"])
            if run is not None:
                self._receive(run, message, at_s)
            elif message["did"] == "exited":
                self.warm_pool.record_exit(message["run"])
            elif message["did"] == "started":
                self._end_late_start(message)
        return messages is not None

    def _receive(self, run: LiveRun, message: dict[str, Any], at_s: float) -> None:
        match message["did"]:
            case "started":
                first = ProcId(message["pid"], message["start_ticks"])
                run.record_start(first)
                if run.pen is not None:
                    run.pen.set_first(first)
                self.started.append(run)
                if run.stop_order is not None:  # it was asked to end before it had started
                    self._send_end(run)
            case "refused":
                # A keeper of an earlier version does not report whose failure it is.
                is_ours = message.get("is_ours", False)
                run.refuse(Refusal(message["errno"], message["what"], is_ours), at_s)
                if run.warm is not None and run.warm.taken_from:
                    self._abandon(run, run.warm.taken_from)
            case "exited":
                self._receive_exit(run, message, at_s)
            case "closed":
                run.close_output(heap_exhausted=is_heap_exhausted(run.dir, run.exit))

    def _end_late_start(self, message: dict[str, Any]) -> None:
        """Ends a run that the keeper started late: it was ended while the keeper did not answer."""
        if message["run"] not in self.warm_pool.all:
            signal_processes([ProcId(message["pid"], message["start_ticks"])], signal.SIGKILL)

    def end_without_keeper(self, at_s: float, *, is_last: bool) -> None:
        """The keeper does not answer. A run that was asked to end has ended when its pen is empty;
        with `is_last`, so has every other run that is ending: its output is not waited for.
        """
        for run in self.runs.values():
            is_told = run.stop_order is not None or (is_last and run.is_ending)
            # With a polling pen, the keeper could still start the run afterwards.
            may_start = run.first is None and not self.fleet.kernel_limits and not is_last
            if not is_told or may_start or run.refused is not None:
                continue
            if run.pen is None or run.pen.read().procs:
                continue
            if run.exit is None:
                exit_ = read_exit(run.dir, at_s)
                run.record_exit(exit_ or Exit(None, signal.SIGKILL, at_s))
            run.measure()
            run.close_output(heap_exhausted=False)
            self.keeper.send("close", run=run.id)

    def _abandon(self, run: LiveRun, taken_from: str) -> None:
        """Kills the process that the run was to take over, if any part of it is alive."""
        if run.pen is not None:
            run.pen.kill()
        self.keeper.send("close", run=taken_from)
        self._forget(taken_from)

    def _receive_exit(self, run: LiveRun, message: dict[str, Any], at_s: float) -> None:
        # A keeper of an earlier version does not report whether processes are left.
        may_have_left = message.get("left", True)
        run.record_exit(
            Exit(message["code"], message["signal"], at_s),
            largest_bytes=message["largest_bytes"],
            may_have_left=may_have_left,
        )
        if run.pen is not None and not may_have_left:
            run.pen.set_empty()
        if message["closed"]:
            run.close_output(heap_exhausted=is_heap_exhausted(run.dir, run.exit))
        if run.agent_run is not None and run.stop_order is not None:
            self._send_end(run)  # ends the tools that its agent left

    def _drop_failed_keeper(self) -> None:
        """The keeper ended before its first answer, and so before any request for a run."""
        self.keeper.kill()
        self._keeper_failure = self.keeper.read_failure()
        self.keeper = NoKeeper()

    def replace_keeper(self, at_s: float, *, is_dead: bool = True) -> None:
        """The keeper died, and with it the pipes of its runs: they cannot continue. A keeper that
        does not answer is killed, and no job is suspected for that.
        """
        self.keeper.kill()
        live = [run for run in self.runs.values() if run.refused is None]
        beside = len(live) + len(self.warm_pool.all) - 1
        for run in live:
            lived_s = round(at_s - run.started_s - run.uncounted_s(at_s), 3)
            numbers = {"beside": beside, "lived_s": lived_s} if is_dead else {}
            lost = Reason(Why.KEEPER_LOST, **numbers)
            self._record_lost_keeper(run, lost, at_s)
        for run in self.runs.values():
            self.kill(run, at_s)
        self.warm_pool.record_keeper_loss()
        self.keeper = NoKeeper()
        self.start_keeper()

    def _record_lost_keeper(self, run: LiveRun, reason: Reason, at_s: float) -> None:
        if run.exit is None:
            exit_ = read_exit(run.dir, at_s)
            if exit_ is None and run.stop_order is None:
                run.stop(Stopping(RunEnd.LOST, reason, at_s))
            run.record_exit(exit_ or Exit(None, signal.SIGKILL, at_s))
        if not run.output_closed:
            run.close_output(heap_exhausted=False)

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        self._send_end(run)
        run.stop(stopping)

    def clear(self, run: LiveRun, at_s: float) -> int:
        """Ends the processes that the first process left, and returns their number."""
        leftovers = self._send_end(run)
        run.clear(leftovers, at_s)
        return leftovers

    def _send_end(self, run: LiveRun) -> int:
        """Sends TERM, then CONT: processes that are stopped or held would not receive TERM. A held
        run is thawed after this.
        """
        if run.pen is None:
            return 0
        self.enforcer.raise_backstop(run)
        reached = send_end(run, run.pen)
        run.pen.signal(signal.SIGCONT)
        return reached

    def kill(self, run: LiveRun, at_s: float) -> None:
        run.record_kill(at_s)
        if run.pen is not None:
            run.pen.kill()

    def close_output(self) -> None:
        """The output of a run is complete once no process in its pen can print."""
        for run in self.runs.values():
            if run.ask_to_close():
                self.keeper.send("close", run=run.id)

    def finish(self, run: LiveRun, at_s: float) -> None:
        del self.runs[run.id]
        run.end(at_s)
        self._forget(run.id)
        self._revoke_servers(run)
        if run.pen is not None:
            self._clean_up(run.home, run.pen)

    def _remove_idle(self, idle: IdleProcess) -> None:
        self._forget(idle.last.id)
        self._revoke_servers(idle.last)
        self._clean_up(idle.last.home, idle.pen)

    def _forget(self, run: str) -> None:
        if self.keeper.is_adoptable:
            self.keeper.send("forget", run=run)

    def _clean_up(self, home: str, pen: Pen) -> None:
        self._cleanup.add(home, pen, self.runs_dir / home / "tmp")

    def grant_fds(self, at_s: float) -> dict[int, LiveRun]:
        """Descriptors that become readable when a run is at its grant."""
        return {
            fd: run
            for run in self.runs.values()
            if run.held_since_s is None and not run.is_ending
            if at_s >= run.grant.muted_until_s
            if run.pen is not None and (fd := run.pen.grant_fd()) is not None
        }

    def muted_for_s(self, at_s: float) -> float:
        """The time until the events of a run are read again."""
        waits = (run.grant.muted_until_s - at_s for run in self.runs.values())
        return min((wait for wait in waits if wait > 0), default=math.inf)

    def clean_up(self) -> list[CleanedPen]:
        return self._cleanup.advance()

    @property
    def is_occupied(self) -> bool:
        return bool(self.runs or self.warm_pool.all)

    @property
    def has_lost_runs(self) -> bool:
        """Whether runs of a dead keeper are being cleared."""
        stops = (run.stop_order for run in self.runs.values())
        return any(stop is not None and stop.end is RunEnd.LOST for stop in stops)

    @property
    def is_busy(self) -> bool:
        """Whether a run or process is about to end: the next step comes soon."""
        busy = self._cleanup.is_busy or self.warm_pool.is_busy
        return busy or any(run.is_ending or run.is_renewing for run in self.runs.values())

    def shut_down(self, wait_s: float = 10.0) -> list[CleanedPen]:
        """Leaves nothing behind, in any state: ends the pens, then the keeper, then the fleet."""
        deadline = time.monotonic() + wait_s
        for run in list(self.runs.values()):
            run.release(deadline)
            kill_all(run.pen, deadline)
            self.finish(run, deadline)
        for idle in self.warm_pool.pop_all():
            kill_all(idle.pen, deadline)
            self._remove_idle(idle)
        cleaned = self._cleanup.finish()
        self.enforcer.close()
        if self.is_keeper_hanging:
            self.keeper.kill()
        else:
            self.keeper.close()
        return cleaned


def layers_of(
    run: LiveRun, inherited: Layer, own: Layer, *, resumed: bool, token: str = ""
) -> list[Layer]:
    """The environment of a run: inherited variables, the agent's, the job's own, and ours."""
    ours: Layer = {
        "RAMHERD_RUN": run.id,
        "RAMHERD_JOB": run.job.id,
        "RAMHERD_HERD": run.job.herd,
        "RAMHERD_ATTEMPT": str(run.attempt),
        "TMPDIR": str(run.dir / "tmp"),
        "RAMHERD_RESUMED": "1" if resumed else None,
        MCP_TOKEN: token or None,
    }
    agent: Layer = dict(run.agent_run.launch.env) if run.agent_run is not None else {}
    return [inherited, agent, own, ours]


def send_end(run: LiveRun, pen: Pen) -> int:
    """At first only the agent gets the signal: if its tools ended too, it would record their
    failure in its history.
    """
    if run.agent_run is not None and run.exit is None and run.first is not None:
        return signal_processes([run.first], run.agent_run.agent.stop_signal)
    return pen.signal(signal.SIGTERM)


def argv_of(run: LiveRun, *, resumed: bool) -> tuple[str, tuple[str, ...]]:
    """The job's field and the arguments in it. A job that cannot resume starts over."""
    if run.agent_run is not None:
        return "", run.agent_run.launch.argv
    if resumed and run.job.resume_argv:
        return "resume_argv", run.job.resume_argv
    return "argv", run.job.argv


def stdin_of(run: LiveRun) -> str | None:
    """Standard input is a file, not a pipe: it can have any size, and no process has to write it.
    None: there is no input, or it is large and in a file already.
    """
    if run.agent_run is not None:
        launch = run.agent_run.launch
        return None if launch.is_prompt_file else launch.stdin
    return None if "stdin" in run.job.large else run.job.stdin


def large_stdin_of(run: LiveRun, state: Path) -> str:
    """The file with the large standard input of a job of the service."""
    if run.agent_run is not None:
        field = "prompt" if run.agent_run.launch.is_prompt_file else ""
    else:
        field = "stdin" if "stdin" in run.job.large else ""
    return str(input_path(state, run.job.id, field)) if field else ""


def describe_os_error(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def kill_all(pen: Pen | None, deadline: float) -> None:
    while pen is not None and pen.read().procs and time.monotonic() < deadline:
        pen.kill()
        time.sleep(0.01)


def read_exit(run_dir: Path, at_s: float) -> Exit | None:
    """The exit status that the keeper wrote before it died; None for a run that had not ended."""
    try:
        status = parse_record((run_dir / "status").read_bytes())
    except FileNotFoundError:
        return None
    return Exit(status["code"], status["signal"], at_s) if status is not None else None


def is_heap_exhausted(run_dir: Path, exit_: Exit | None) -> bool:
    """V8 aborts with its own message: its heap was full, the machine's memory perhaps not."""
    aborted = exit_ is not None and (exit_.signal == signal.SIGABRT or exit_.code == V8_EXIT_CODE)
    return aborted and V8_MESSAGE in read_tail(run_dir, "err", TAIL_BYTES)
