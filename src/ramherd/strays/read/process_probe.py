"""Probes the few processes that may be strays: environment, descriptors, sockets, and whether the
other side of their pipes is open.

A pipe is opened through /proc and polled: POLLHUP means that no writer is left anywhere, POLLERR
that no reader is. For a socket the kernel reports the other end.
"""

import os
import re
import signal
import stat
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ramherd.strays.nouns import Details, PeerState, Software
from ramherd.strays.read.listeners import (
    Sockets,
    find_clients,
    find_connections,
    shown_listener,
)
from ramherd.system.proc_stat import PROC
from ramherd.system.procfs import (
    DEVICES,
    ignores_signal,
    is_written,
    open_descriptor,
    read_descriptor,
    read_descriptors,
    read_environ,
    read_namespaces,
)
from ramherd.system.wait import is_hung_up

RUN, KEEP = "RAMHERD_RUN", "RAMHERD_KEEP"
NO = ("", "0", "false", "no")
# Files that are open for writing whether or not the process does any work.
NPM_LOGS, DELETED = "/.npm/_logs/", " (deleted)"
PTY_MASTER = "/dev/ptmx"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Probe(NamedTuple):
    """The input shared by all probes."""

    agents: tuple[Software, ...]
    sockets: Sockets
    proc: str = PROC

    def read(self, pids: Iterable[int]) -> dict[int, Details]:
        return {pid: self.read_one(pid) for pid in pids}

    def read_one(self, pid: int) -> Details:
        environ, targets = read_environ(pid, self.proc), read_descriptors(pid, self.proc)
        elsewhere = read_namespaces(pid, self.proc) != self.sockets.namespaces
        if environ is None or targets is None or elsewhere:
            return Details(readable=False)
        stdin, stdout, stderr = (self.read_peer(pid, fd, targets) for fd in (0, 1, 2))
        found = [_SOCKET.fullmatch(target) for target in targets.values()]
        inodes = frozenset(int(match[1]) for match in found if match)
        names, clients = find_clients(inodes, self.sockets)
        marked = [one for one in self.agents if has_any(environ, one.marks)]
        return Details(
            stdin=stdin[0],
            stdout=stdout[0],
            stderr=stderr[0],
            stdin_inode=stdin[1],
            prints_to_agent=is_output(marked, targets.get(1, "")),
            on_terminal=PeerState.TERMINAL in (stdin[0], stdout[0], stderr[0]),
            on_display=any(
                self.sockets.peers.get(inode) in self.sockets.displays for inode in inodes
            ),
            keeps_terminal=PTY_MASTER in targets.values(),
            listens=tuple(sorted(map(shown_listener, names))),
            connections=tuple(find_connections(inodes, names, self.sockets)),
            writes=self.read_written(pid, targets, marked),
            clients=clients,
            sockets=inodes,
            nohup=ignores_signal(pid, signal.SIGHUP, self.proc),
            keep=environ.get(KEEP, "").lower() not in NO,
            marks=tuple(one.name for one in marked),
            wrapped=find_wrapped(self.agents, environ),
            owner_pid=first_number(environ.get(one.pid_in, "") for one in self.agents),
            session=next(
                (environ[one.session_in] for one in self.agents if one.session_in in environ), ""
            ),
            run=environ.get(RUN, ""),
        )

    def read_peer(self, pid: int, fd: int, targets: Mapping[int, str]) -> tuple[PeerState, int]:
        """(the other side of a descriptor, the inode of its pipe or socket)."""
        target = targets.get(fd, "")
        if target.startswith(("/dev/pts/", "/dev/tty")):
            return PeerState.TERMINAL, 0
        kind, _colon, number = target.partition(":")
        inode = int(number[1:-1]) if number[1:-1].isdigit() else 0
        if kind == "pipe":
            return probe_pipe(pid, fd, self.proc), inode
        if kind == "socket":
            return peer_of_socket(inode, self.sockets.peers), inode
        return PeerState.NONE, 0

    def read_ends(self, pid: int) -> tuple[tuple[PeerState, int], tuple[PeerState, int]]:
        """The other sides of stdin and stdout, without anything else of the process."""
        targets = {fd: read_descriptor(pid, fd, self.proc) for fd in (0, 1)}
        return self.read_peer(pid, 0, targets), self.read_peer(pid, 1, targets)

    def read_written(
        self, pid: int, targets: Mapping[int, str], marked: Iterable[Software]
    ) -> tuple[str, ...]:
        """Files of its own that it has open for writing."""
        files = {
            target
            for fd, target in targets.items()
            if target.startswith("/")
            and not target.startswith(DEVICES)
            and not target.endswith(DELETED)
            and NPM_LOGS not in target
            and not is_output(marked, target)
            and is_written(pid, fd, self.proc)
        }
        return tuple(sorted(files))

    def is_marked(self, pid: int) -> bool:
        """Whether an agent or a run of ours started it, by its environment alone."""
        environ = read_environ(pid, self.proc)
        return environ is not None and (RUN in environ or bool(find_marks(self.agents, environ)))


def has_any(environ: Mapping[str, str], variables: Iterable[str]) -> bool:
    return any(environ.get(variable) for variable in variables)


def find_marks(agents: Iterable[Software], environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(one.name for one in agents if has_any(environ, one.marks))


def find_wrapped(agents: Iterable[Software], environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        one.name
        for one in agents
        if any(all(map(environ.get, names.split("+"))) for names in one.wrapped)
    )


def is_output(agents: Iterable[Software], target: str) -> bool:
    """Whether the file is one to which these agents make their tools print."""
    return any(re.search(path, target) for one in agents for path in one.outputs)


def first_number(texts: Iterable[str]) -> int:
    return next((int(text) for text in texts if text.isdecimal()), 0)


def peer_of_socket(inode: int, peers: Mapping[int, int]) -> PeerState:
    """A socket that is not in the list is of another kind, or of another network namespace."""
    if inode not in peers:
        return PeerState.UNKNOWN
    return PeerState.LIVE if peers[inode] else PeerState.GONE


def probe_pipe(pid: int, number: int, proc: str = PROC) -> PeerState:
    """Descriptor 0 is read from, the others are written to."""
    flags = os.O_NONBLOCK | (os.O_RDONLY if number == 0 else os.O_WRONLY)
    try:
        fd = open_descriptor(pid, number, flags, proc)
    except OSError:
        return PeerState.UNKNOWN
    try:
        # The number may be another file by now.
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return PeerState.UNKNOWN
        return PeerState.GONE if is_hung_up(fd) else PeerState.LIVE
    finally:
        os.close(fd)
