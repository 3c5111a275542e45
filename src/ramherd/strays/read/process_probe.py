"""What is asked of the few processes that may be strays: descriptors, environment, sockets."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ramherd.strays.nouns import Details, PeerState, Software
from ramherd.strays.read.listeners import Sockets, find_clients, read_namespaces
from ramherd.strays.read.pipe_peers import PTY_MASTER, read_end

# An environment has at most so much of what is looked for.
ENVIRON_BYTES = 1 << 20
RUN = "RAMHERD_RUN"
SIGHUP_BIT = 1
_IGNORED = re.compile(rb"^SigIgn:\s*([0-9a-f]+)", re.MULTILINE)
_SOCKET = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True)
class Probe:
    """What all processes are asked with."""

    agents: tuple[Software, ...]
    sockets: Sockets
    proc: str = "/proc"

    def read(self, pids: Iterable[int]) -> dict[int, Details]:
        return {pid: self.read_one(pid) for pid in pids}

    def read_one(self, pid: int) -> Details:
        environ, targets = read_environ(pid, self.proc), read_targets(pid, self.proc)
        elsewhere = read_namespaces(pid, self.proc) != self.sockets.namespaces
        if environ is None or targets is None or elsewhere:
            return Details(readable=False)
        stdin, stdout, stderr = (
            read_end(pid, fd, self.sockets.peers, self.proc) for fd in (0, 1, 2)
        )
        found = [_SOCKET.fullmatch(target) for target in targets.values()]
        inodes = frozenset(int(match[1]) for match in found if match)
        listens, clients = find_clients(inodes, self.sockets)
        return Details(
            stdin=stdin[0],
            stdout=stdout[0],
            stderr=stderr[0],
            stdin_inode=stdin[1],
            prints_to_agent=prints_to(self.agents, environ, targets.get("1", "")),
            on_terminal=PeerState.TERMINAL in (stdin[0], stdout[0], stderr[0]),
            on_display=any(
                self.sockets.peers.get(inode) in self.sockets.displays for inode in inodes
            ),
            keeps_terminal=PTY_MASTER in targets.values(),
            listens=listens,
            clients=clients,
            sockets=inodes,
            nohup=ignores_hangup(pid, self.proc),
            marks=find_marks(self.agents, environ),
            wrapped=find_wrapped(self.agents, environ),
            owner_pid=first_number(environ.get(one.pid_in, "") for one in self.agents),
            session=next(
                (environ[one.session_in] for one in self.agents if one.session_in in environ), ""
            ),
            run=environ.get(RUN, ""),
        )

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


def prints_to(agents: Iterable[Software], environ: Mapping[str, str], target: str) -> bool:
    return any(
        part in target for one in agents if has_any(environ, one.marks) for part in one.outputs
    )


def first_number(texts: Iterable[str]) -> int:
    return next((int(text) for text in texts if text.isdecimal()), 0)


def read_environ(pid: int, proc: str = "/proc") -> dict[str, str] | None:
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            data = file.read(ENVIRON_BYTES)
    except OSError:
        return None
    pairs = (entry.partition("=") for entry in data.decode(errors="replace").split("\0"))
    return {key: value for key, equals, value in pairs if equals}


def read_targets(pid: int, proc: str = "/proc") -> dict[str, str] | None:
    """What each descriptor leads to; None if that is not ours to read."""
    found = {}
    try:
        for fd in os.listdir(f"{proc}/{pid}/fd"):
            try:
                found[fd] = os.readlink(f"{proc}/{pid}/fd/{fd}")
            except FileNotFoundError:
                continue
    except OSError:
        return None
    return found


def ignores_hangup(pid: int, proc: str = "/proc") -> bool:
    """What nohup does: somebody wants it to outlive its session."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            match = _IGNORED.search(file.read())
    except OSError:
        return False
    return match is not None and bool(int(match[1], 16) & SIGHUP_BIT)
