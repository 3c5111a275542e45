"""The keeper: the small process that is parent and subreaper of the runs.

Stdlib only, and little of it: it lives as long as the runs do and its memory counts. It joins
each run to its pen before exec, moves what the run prints to disk, and writes its exit status.
It talks to its supervisor in lines of JSON over one inherited socket. When that closes, the
supervisor is gone: the keeper ends what still runs (TERM, grace, KILL), then itself. One that was
given a socket to listen on lets its runs go on instead, until the next supervisor comes.

What a pen is, when to stop a run and what its end means is for others to know.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import time

from ramherd.act.become import Ends, become
from ramherd.act.child import Run, read_start_ticks
from ramherd.act.descendants import (
    find_descendants,
    has_children,
    has_orphans,
    kill_descendants,
    signal_all,
)
from ramherd.act.door import GONE, Door
from ramherd.act.files import remove_dirs, try_control
from ramherd.act.requests import MOST_BYTES, parse_request
from ramherd.act.streams import Log

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

PR_SET_CHILD_SUBREAPER = 36
META_EVERY_S = 1.0
KILL_S = 10.0


class Keeper:
    def __init__(self, control: int, grace_s: float, nofile: int, door: Door | None) -> None:
        self.control = control
        self.grace_s = grace_s
        self.door = door
        self.runs: dict[str, Run] = {}
        self.fleet_dirs: list[str] = []
        self.inbox = b""
        self.lost_s = 0.0
        self.asked_to_end = False
        # How runs ended, until a supervisor has it on record. Only the next one asks for it.
        self.ends: dict[str, dict[str, Any]] = {}
        # The limit that the user has: ours was raised.
        self.nofile = (nofile, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        self.epoll = select.epoll()
        self.watched: dict[int, tuple[str, Run | None]] = {}

    def watch(self, fd: int, what: str, run: Run | None = None) -> None:
        self.watched[fd] = (what, run)
        self.epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """And close it: from now on the number may be another run's."""
        del self.watched[fd]
        self.epoll.unregister(fd)
        os.close(fd)

    def serve(self, wakeup: int) -> None:
        """Until the supervisor is gone, and no other will come."""
        self.watch(self.control, "control")
        self.watch(wakeup, "child")
        if self.door is not None:
            self.watch(self.door.fd, "door")
        while not self.is_over():
            due = any(run.meta_due for run in self.runs.values())
            alone = self.control == GONE
            self.turn(META_EVERY_S if due or alone else -1)
            for run in list(self.runs.values()) if due else ():
                self.note_meta(run)
            # Not within the turn: the number of a socket lost there could be the new one's.
            if self.door is not None and self.door.knocked:
                self.answer(self.door)

    def is_over(self) -> bool:
        """Without a supervisor: at once, or when nothing runs any more, or nobody came in time.
        What ended by then is on disk.
        """
        if self.control != GONE or self.asked_to_end:
            return self.asked_to_end
        if self.door is None or not has_children():
            return True
        return time.monotonic() - self.lost_s >= self.door.alone_s

    def answer(self, door: Door) -> None:
        """The next supervisor, if there is none; a second one is sent away."""
        fd = door.accept()
        if fd == GONE:
            return
        if self.control != GONE:
            door.send_away(fd)
            return
        self.control = fd
        self.watch(fd, "control")
        self.tell("here", "", runs=[*self.runs, *self.ends], pid=os.getpid())
        for run in list(self.runs.values()):
            if run.report == GONE and run.pid != GONE:
                self.tell_started(run)
        for run_id, end in list(self.ends.items()):
            self.tell(run=run_id, **end)

    def lose_control(self) -> None:
        """Half a request is none. Held runs go on: nobody is there to give them more."""
        self.unwatch(self.control)
        self.control = GONE
        self.inbox = b""
        self.lost_s = time.monotonic()
        self.on_loss("thaw")
        if any(not run.on_loss["thaw"] for run in self.runs.values()):
            signal_all(find_descendants(os.getpid()), signal.SIGCONT)

    def turn(self, timeout_s: float) -> None:
        for fd, _events in self.epoll.poll(timeout_s):
            what, run = self.watched.get(fd, ("closed in this turn", None))
            if what == "control":
                self.hear()
            elif what == "child":
                os.read(fd, 4096)
                self.reap()
            elif what == "door" and self.door is not None:
                self.door.knocked = True
            elif run is not None and what == "report":
                self.settle_start(run)
            elif run is not None:
                self.drain(run, what)

    def hear(self) -> None:
        try:
            data = os.read(self.control, 1 << 16)
        except ConnectionResetError:
            data = b""
        *lines, self.inbox = (self.inbox + data).split(b"\n")
        for line in lines:
            try:
                self.do(parse_request(line))
            except ValueError as error:
                self.tell("bad", "", what=str(error)[:200])
        if self.control != GONE and (not data or len(self.inbox) > MOST_BYTES):
            self.lose_control()

    def do(self, request: dict[str, Any]) -> None:
        match request["do"]:
            case "spawn" if request["run"] in self.runs:
                raise ValueError(f"{request['run']} runs already")
            case "spawn":
                self.spawn(request)
            case "close":
                self.close(request["run"])
            case "forget":
                self.ends.pop(request["run"], None)
            case "fleet":
                self.fleet_dirs = request["dirs"]
            case "end":
                self.asked_to_end = True

    def tell(self, did: str, run: str, **values: Any) -> None:
        message = json.dumps({"did": did, "run": run, **values}).encode() + b"\n"
        try:
            while message and self.control != GONE:
                message = message[os.write(self.control, message) :]
        except (BrokenPipeError, ConnectionResetError):
            self.lose_control()

    def tell_end(self, did: str, run: str, **values: Any) -> None:
        if self.door is not None:
            self.ends[run] = {"did": did, **values}
        self.tell(did, run, **values)

    def spawn(self, request: dict[str, Any]) -> None:
        """Fork, not vfork with a wrapper: 1.7 ms, and each step that fails is told apart."""
        opened: list[int] = []
        logs: dict[str, Log] = {}
        try:
            os.makedirs(f"{request['dir']}/tmp", 0o700, exist_ok=True)
            for name in ("out", "err"):
                logs[name] = Log(f"{request['dir']}/{name}", *request["log"])
            opened.append(os.open(request["stdin"] or os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            for _pipe in range(3):
                opened += os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except OSError as error:
            for fd in opened:
                os.close(fd)
            for log in logs.values():
                log.close()
            what = f"cannot start: {error}"
            self.tell_end("refused", request["run"], errno=error.errno, what=what)
            return
        stdin, out, out_end, err, err_end, report, report_end = opened
        ends = Ends(stdin, out_end, err_end, report_end)
        if pid == 0:
            become(request, ends, self.nofile)
        ends.close()
        run = Run(request, logs)
        run.pid, run.report, run.pipes = pid, report, {"out": out, "err": err}
        self.take(run)

    def take(self, run: Run) -> None:
        self.runs[run.id] = run
        self.watch(run.report, "report", run)
        for name, pipe in run.pipes.items():
            os.set_blocking(pipe, False)
            self.watch(pipe, name, run)

    def settle_start(self, run: Run) -> bool:
        """The report pipe closes at exec; what stands in it before is an error."""
        text = os.read(run.report, 4096)
        self.unwatch(run.report)
        run.report = GONE
        if not text:
            self.tell_started(run)
            return True
        number, _, what = text.decode(errors="replace").partition(" ")
        self.forget(run)
        self.tell_end("refused", run.id, errno=int(number), what=what)
        return False

    def tell_started(self, run: Run) -> None:
        self.tell("started", run.id, pid=run.pid, start_ticks=read_start_ticks(run.pid))

    def drain(self, run: Run, name: str) -> None:
        log = run.logs[name]
        if not log.drain(run.pipes[name]):
            self.unwatch(run.pipes.pop(name))
        run.meta_due = run.meta_due or log.wrapped
        self.note_meta(run)

    def note_meta(self, run: Run) -> None:
        """Where the ring stands, for those who read while it is written: once a second."""
        now = time.monotonic()
        if run.meta_due and now - run.meta_at >= META_EVERY_S:
            run.meta_at = now
            run.meta_due = False
            run.write("meta.json", run.meta())

    def reap(self) -> None:
        """All children are ours to reap: known ones are told of, adopted ones just go."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            run = next((run for run in self.runs.values() if run.pid == pid), None)
            if run is not None:
                self.note_exit(run, os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10)

    def note_exit(self, run: Run, code: int, largest_bytes: int) -> None:
        if run.report != GONE and not self.settle_start(run):
            return
        run.pid = GONE
        how = {"code": code if code >= 0 else None, "signal": -code if code < 0 else None}
        run.write("status", {**how, "at_s": time.time()})
        # Nothing was dropped, so nobody needs the meta file to read the rest.
        closed = self.drain_all(run) and not run.meta_due
        if closed:
            # Before it is told: whoever hears it tidies that directory up, and we would wait.
            run.write("meta.json", run.meta())
            self.forget(run)
        left = has_orphans({other.pid for other in self.runs.values()})
        self.tell_end(
            "exited", run.id, **how, largest_bytes=largest_bytes, closed=closed, left=left
        )

    def drain_all(self, run: Run) -> bool:
        """Mostly nobody else holds the pipes: then its output is complete, and nobody need ask."""
        for name, pipe in list(run.pipes.items()):
            if not run.logs[name].drain(pipe):
                self.unwatch(run.pipes.pop(name))
            run.meta_due = run.meta_due or run.logs[name].wrapped or run.logs[name].lost > 0
        return not run.pipes

    def close(self, name: str) -> None:
        """The run is over and its pen empty: keep the last of its output and let it go."""
        run = self.runs.get(name)
        if run is None:
            return
        for stream, pipe in run.pipes.items():
            run.logs[stream].drain(pipe)
        run.write("meta.json", run.meta())
        self.forget(run)
        if run.id in self.ends:
            self.ends[run.id]["closed"] = True
        self.tell("closed", run.id, **run.meta())

    def forget(self, run: Run) -> None:
        for fd in run.pipes.values():
            self.unwatch(fd)
        for log in run.logs.values():
            log.close()
        self.runs.pop(run.id, None)

    def end_everything(self) -> None:
        """The supervisor is gone: TERM, the grace, KILL; then nothing of it is left."""
        if self.control != GONE:
            self.lose_control()
        if self.door is not None:
            self.unwatch(self.door.fd)
        below = find_descendants(os.getpid())
        signal_all(below, signal.SIGTERM)
        signal_all(below, signal.SIGCONT)
        self.turn_until_alone(self.grace_s)
        self.on_loss("kill")
        kill_descendants(os.getpid())
        # What even KILL does not end is root's by a setuid program: not ours to wait for.
        self.turn_until_alone(KILL_S, kill=True)
        for run in list(self.runs.values()):
            self.close(run.id)
            remove_dirs(run.dirs)
        remove_dirs(self.fleet_dirs)

    def turn_until_alone(self, most_s: float, *, kill: bool = False) -> None:
        """Until no child is left, which is exact: whatever loses its parent becomes ours."""
        deadline = time.monotonic() + most_s
        while has_children() and time.monotonic() < deadline:
            if kill:
                kill_descendants(os.getpid())
            self.turn(0.02)

    def on_loss(self, what: str) -> None:
        for run in self.runs.values():
            for path, value in run.on_loss[what]:
                try_control(path, value)


def become_subreaper() -> None:
    """The setting survives exec; ctypes, which alone can set it, costs 1.1 MB and does not."""
    if sys.argv[-1] == "subreaper":
        return
    import ctypes  # noqa: PLC0415

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv, "subreaper"])


def main() -> None:
    become_subreaper()
    control, grace_s, nofile = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    door_fd, alone_s = int(sys.argv[4]), float(sys.argv[5])
    # No run may hold our sockets: the supervisor would not see us die.
    os.set_inheritable(control, False)
    door = None
    if door_fd != GONE:
        os.set_inheritable(door_fd, False)
        door = Door(door_fd, alone_s)
    os.chdir("/")
    wakeup, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # At a shutdown everybody gets TERM. The supervisor ends the runs, and we end with it.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keeper = Keeper(control, grace_s, nofile, door)
    gc.freeze()  # pages that no collection touches stay shared with every fork
    keeper.serve(wakeup)
    keeper.end_everything()
