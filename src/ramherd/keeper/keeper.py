"""The keeper: the small process that is parent and subreaper of the runs.

It uses a small part of the standard library only, because it lives as long as the runs and its
memory counts. It joins each run to its pen before exec, moves the output of the run to disk, and
writes its exit status. The supervisor sends requests over one inherited socket. When the socket
closes, the supervisor is gone: the keeper ends the remaining runs (TERM, grace, KILL), then itself.
With a socket to listen on, it lets its runs continue instead, until the next supervisor connects.

Other modules decide what a pen is, when to stop a run, and what its end means.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time

from ramherd.keeper.adoption_socket import AdoptionSocket, refuse_second
from ramherd.keeper.children import META_EVERY_S, Children
from ramherd.keeper.event_loop import GONE, EventLoop
from ramherd.keeper.supervisor_link import SupervisorLink
from ramherd.system.descendants import (
    find_descendants,
    has_children,
    kill_descendants,
    signal_all,
)
from ramherd.system.files import remove_dirs, try_control
from ramherd.system.own_process import become_subreaper
from ramherd.system.termination import terminate

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any


class Keeper:
    def __init__(self, nofile: int, adoption: AdoptionSocket | None) -> None:
        self.adoption = adoption
        self.fleet_dirs: list[str] = []
        self.asked_to_end = False
        self.loop = EventLoop()
        self.link = SupervisorLink(self.loop, self.handle, self.release_runs)
        # The user's limit: ours was raised.
        limits = (nofile, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        self.children = Children(self.loop, self.link, limits, keeps_ends=adoption is not None)

    def serve(self, control: int, wakeup: int) -> None:
        """Runs until the supervisor is gone and no other will connect."""
        self.link.connect(control)
        self.loop.watch(wakeup, lambda: self.receive_child_signal(wakeup))
        if self.adoption is not None:
            self.loop.watch(self.adoption.fd, self.adoption.set_ready)
        while not self.is_over():
            runs = self.children.runs
            due = any(run.meta_due for run in runs.values())
            self.loop.turn(META_EVERY_S if due or not self.link.is_connected else -1)
            for run in list(runs.values()) if due else ():
                run.write_meta_if_due()
            # Not within the turn: the new socket could get the number of a socket closed in it.
            if self.adoption is not None and self.adoption.is_ready:
                self.accept_supervisor(self.adoption)

    def is_over(self) -> bool:
        """Without a supervisor, the keeper ends at once, or when no run is left, or when no
        supervisor connected in time. Runs that have ended by then are on disk.
        """
        if self.link.is_connected or self.asked_to_end:
            return self.asked_to_end
        if self.adoption is None or not has_children():
            return True
        return time.monotonic() - self.link.lost_s >= self.adoption.alone_s

    def receive_child_signal(self, wakeup: int) -> None:
        os.read(wakeup, 4096)
        self.children.reap()

    def accept_supervisor(self, adoption: AdoptionSocket) -> None:
        """Accepts a supervisor if there is none; refuses a second one."""
        fd = adoption.accept()
        if fd == GONE:
            return
        if self.link.is_connected:
            refuse_second(fd)
            return
        self.link.connect(fd)
        self.children.send_all()

    def handle(self, request: dict[str, Any]) -> None:
        children = self.children
        match request["do"]:
            case "spawn":
                children.start(request)
            case "feed":
                children.add_stdin(request)
            case "hang_up":
                children.close_stdin(children.runs.get(request["run"]))
            case "pass":
                children.reassign(request)
            case "close":
                children.close(request["run"])
            case "forget":
                children.ends.pop(request["run"], None)
            case "log_growth":
                children.set_log_growth(request["bytes"])
            case "fleet":
                self.fleet_dirs = request["dirs"]
            case "end":
                self.asked_to_end = True

    def release_runs(self) -> None:
        """The supervisor is gone. Held runs continue: no supervisor could raise their grants."""
        self.write_on_loss("thaw")
        runs = list(self.children.runs.values())
        for run in runs:
            self.children.close_stdin(run)
        if any(not run.on_loss["thaw"] for run in runs):
            signal_all(find_descendants(os.getpid()), signal.SIGCONT)

    def end_everything(self, grace_s: float) -> None:
        """The supervisor is gone: TERM, the grace, KILL, until no process of its runs is left."""
        self.link.disconnect()
        if self.adoption is not None:
            self.loop.close(self.adoption.fd)
        below = find_descendants(os.getpid())
        terminate(
            lambda number: signal_all(below, number), self.kill, self.turn_until_alone, grace_s
        )
        for run in list(self.children.runs.values()):
            self.children.close(run.id)
            remove_dirs(run.dirs)
        remove_dirs(self.fleet_dirs)

    def kill(self) -> None:
        """Kills by the pens, if the kernel can kill a whole pen, and all our descendants."""
        self.write_on_loss("kill")
        kill_descendants(os.getpid())

    def turn_until_alone(self, most_s: float) -> bool:
        """Until no child is left, which is exact: a process that loses its parent becomes ours."""
        deadline = time.monotonic() + most_s
        while is_left := has_children():
            if time.monotonic() >= deadline:
                break
            self.loop.turn(0.02)
        return not is_left

    def write_on_loss(self, what: str) -> None:
        for run in self.children.runs.values():
            for path, value in run.on_loss[what]:
                try_control(path, value)


def start_as_subreaper() -> None:
    """Executes this program again: that keeps the setting and frees the 1.1 MB that it took."""
    if sys.argv[-1] == "subreaper":
        return
    become_subreaper()
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-X", "utf8", *sys.argv, "subreaper"])


def main() -> None:
    start_as_subreaper()
    control, grace_s, nofile = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    adoption_fd, alone_s = int(sys.argv[4]), float(sys.argv[5])
    # No run may hold our sockets: the supervisor would not see us die.
    os.set_inheritable(control, False)
    adoption = None
    if adoption_fd != GONE:
        os.set_inheritable(adoption_fd, False)
        adoption = AdoptionSocket(adoption_fd, alone_s)
    os.chdir("/")
    wakeup, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # At a shutdown all processes get TERM. The supervisor ends the runs, and we end with it.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keeper = Keeper(nofile, adoption)
    gc.freeze()  # pages that no collection writes to stay shared with every fork
    keeper.serve(control, wakeup)
    keeper.end_everything(grace_s)
