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
import signal
import sys
import time

from ramherd.keeper.adoption_socket import GONE, Door
from ramherd.keeper.children import META_EVERY_S, Tending
from ramherd.keeper.requests import MOST_BYTES, parse_request
from ramherd.system.descendants import (
    find_descendants,
    has_children,
    kill_descendants,
    signal_all,
)
from ramherd.system.files import remove_dirs, try_control
from ramherd.system.own_process import become_subreaper
from ramherd.system.termination import terminate

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any


class Keeper(Tending):
    def __init__(self, control: int, grace_s: float, nofile: int, door: Door | None) -> None:
        self.control = control
        self.grace_s = grace_s
        self.door = door
        self.fleet_dirs: list[str] = []
        self.inbox = b""
        self.lost_s = 0.0
        self.asked_to_end = False
        # The limit that the user has: ours was raised.
        super().__init__((nofile, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

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
        for run in list(self.runs.values()):
            self.hang_up(run)
        if any(not run.on_loss["thaw"] for run in self.runs.values()):
            signal_all(find_descendants(os.getpid()), signal.SIGCONT)

    def turn(self, timeout_s: float) -> None:
        for fd, _events in self.poller.wait(timeout_s):
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
            elif run is not None and what == "feed":
                self.feed(run)
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
            case "feed":
                self.feed_more(request)
            case "hang_up":
                self.hang_up(self.runs.get(request["run"]))
            case "pass":
                self.pass_on(request)
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

    def end_everything(self) -> None:
        """The supervisor is gone: TERM, the grace, KILL; then nothing of it is left."""
        if self.control != GONE:
            self.lose_control()
        if self.door is not None:
            self.unwatch(self.door.fd)
        below = find_descendants(os.getpid())
        terminate(
            lambda number: signal_all(below, number), self.kill, self.turn_until_alone, self.grace_s
        )
        for run in list(self.runs.values()):
            self.close(run.id)
            remove_dirs(run.dirs)
        remove_dirs(self.fleet_dirs)

    def kill(self) -> None:
        """By the pens where the kernel kills all in one, and by what is below us."""
        self.on_loss("kill")
        kill_descendants(os.getpid())

    def turn_until_alone(self, most_s: float) -> bool:
        """Until no child is left, which is exact: whatever loses its parent becomes ours."""
        deadline = time.monotonic() + most_s
        while is_left := has_children():
            if time.monotonic() >= deadline:
                break
            self.turn(0.02)
        return not is_left

    def on_loss(self, what: str) -> None:
        for run in self.runs.values():
            for path, value in run.on_loss[what]:
                try_control(path, value)


def start_as_subreaper() -> None:
    """Starts this program again: the setting survives exec, the 1.1 MB that it took does not."""
    if sys.argv[-1] == "subreaper":
        return
    become_subreaper()
    os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv, "subreaper"])


def main() -> None:
    start_as_subreaper()
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
