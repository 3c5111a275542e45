"""Listening sockets, and their clients.

TCP from /proc/net, unix sockets from sock_diag: both are of our own network namespace. A process in
another namespace counts as unreadable, because its clients cannot be seen; so does a process in a
container, where pids differ.
"""

from collections.abc import Iterable

from ramherd.system.proc_stat import PROC
from ramherd.system.procfs import read_namespaces, read_net
from ramherd.system.unix_diag import read_unix_sockets

ESTABLISHED, LISTEN = "01", "0A"
# /proc/net/unix: the flag of a listening socket, and the state of a connected one.
ACCEPTS = 0x10000
DISPLAYS = ("/.X11-unix/", "/wayland-")


class Sockets:
    """By inode: the port or name of listening sockets; the other end of connected unix sockets."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.namespaces = namespaces
        self.listening: dict[int, str] = {}
        # Inodes of the clients of each; 0 for a client on another machine.
        self.clients: dict[str, list[int]] = {}
        self.peers: dict[int, int] = {}
        # Ends of displays: a process that is connected to them has windows.
        self.displays: set[int] = set()


def read_sockets(proc: str = PROC) -> Sockets:
    sockets = Sockets(read_namespaces("self", proc))
    parse_tcp(read_net("tcp", proc) + read_net("tcp6", proc), sockets)
    parse_unix(read_net("unix", proc), sockets)
    for inode, name, peer in read_unix_sockets():
        sockets.peers[inode] = peer
        if any(part in name for part in DISPLAYS):
            sockets.displays.add(inode)
        if name and peer:
            sockets.clients.setdefault(f"unix:{name}", []).append(peer)
    return sockets


def parse_tcp(lines: Iterable[str], sockets: Sockets) -> None:
    """Only by port: a socket that listens on all addresses has clients at each."""
    connected: dict[tuple[str, str], int] = {}
    for line in lines:
        words = line.split()
        port, far = words[1].rpartition(":")[2], words[2].rpartition(":")[2]
        if words[3] == LISTEN:
            sockets.listening[int(words[9])] = f"tcp:{port}"
        elif words[3] == ESTABLISHED:
            connected[port, far] = int(words[9])
    for port, far in connected:
        sockets.clients.setdefault(f"tcp:{port}", []).append(connected.get((far, port), 0))


def parse_unix(lines: Iterable[str], sockets: Sockets) -> None:
    for line in lines:
        words = line.split(None, 7)
        if len(words) == 8 and int(words[3], 16) & ACCEPTS:
            sockets.listening[int(words[6])] = f"unix:{words[7]}"


def find_clients(inodes: Iterable[int], sockets: Sockets) -> tuple[bool, tuple[int, ...]]:
    """(whether one of these sockets listens, the processes connected to it)."""
    names = {sockets.listening[inode] for inode in inodes if inode in sockets.listening}
    clients = (inode for name in names for inode in sockets.clients.get(name, ()))
    return bool(names), tuple(clients)
