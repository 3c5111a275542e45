"""Listening sockets, their clients, and established connections.

TCP from /proc/net, unix sockets from sock_diag: both are of our own network namespace. A process in
another namespace counts as unreadable, because its clients cannot be seen; so does a process in a
container, where pids differ.
"""

import re
from collections.abc import Iterable

from ramherd.strays.nouns import Connection
from ramherd.system.proc_stat import PROC
from ramherd.system.procfs import read_namespaces, read_net
from ramherd.system.unix_diag import read_unix_sockets

ESTABLISHED, LISTEN = "01", "0A"
# /proc/net/unix: the flag of a listening socket, and the state of a connected one.
ACCEPTS = 0x10000
DISPLAYS = ("/.X11-unix/", "/wayland-")
# Services to which any program may be connected, at work or not.
# The whole name counts: a socket of the user may be in a directory called business.
SERVICES = re.compile(
    r".*/(\.X11-unix/X\d+|wayland-\d+|dbus-[^/]+|system_bus_socket|bus(_\d+)?|pulse/native"
    r"|pipewire-\d+(-manager)?|nscd/socket|at-spi2-\w+/socket|ssh-\w+/agent\.\d+|ssh-agent[^/]*"
    r"|S\.gpg-agent[^/]*|keyring/\w+|gvfsd?/[^/]+|\.?vscode-[^/]+)|/run/(user/\d+/)?systemd/.+"
)


class Sockets:
    """By inode: the port or name of listening sockets; the other end of connected sockets."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.namespaces = namespaces
        self.listening: dict[int, str] = {}
        # Inodes of the clients of each; 0 for a client on another machine.
        self.clients: dict[str, list[int]] = {}
        self.peers: dict[int, int] = {}
        # Ends of displays: a process that is connected to them has windows.
        self.displays: set[int] = set()
        # Names of the servers' ends of unix sockets.
        self.names: dict[int, str] = {}
        # TCP: the inode of the other end (0: on another machine), the own port, the far address.
        self.streams: dict[int, tuple[int, str, str]] = {}


def read_sockets(proc: str = PROC) -> Sockets:
    sockets = Sockets(read_namespaces("self", proc))
    parse_tcp(read_net("tcp", proc) + read_net("tcp6", proc), sockets)
    parse_unix(read_net("unix", proc), sockets)
    for inode, name, peer in read_unix_sockets():
        sockets.peers[inode] = peer
        if any(part in name for part in DISPLAYS):
            sockets.displays.add(inode)
        if name and peer:
            sockets.names[inode] = name
            sockets.clients.setdefault(f"unix:{name}", []).append(peer)
    return sockets


def parse_tcp(lines: Iterable[str], sockets: Sockets) -> None:
    """Only by port: a socket that listens on all addresses has clients at each."""
    connected: dict[tuple[str, str], tuple[int, str]] = {}
    for line in lines:
        words = line.split()
        port, far = words[1].rpartition(":")[2], words[2].rpartition(":")[2]
        if words[3] == LISTEN:
            sockets.listening[int(words[9])] = f"tcp:{port}"
        elif words[3] == ESTABLISHED:
            connected[port, far] = int(words[9]), words[2]
    for (port, far), (inode, address) in connected.items():
        peer, _address = connected.get((far, port), (0, ""))
        sockets.clients.setdefault(f"tcp:{port}", []).append(peer)
        sockets.streams[inode] = peer, port, address


def parse_unix(lines: Iterable[str], sockets: Sockets) -> None:
    for line in lines:
        words = line.split(None, 7)
        if len(words) == 8 and int(words[3], 16) & ACCEPTS:
            sockets.listening[int(words[6])] = f"unix:{words[7]}"


def find_clients(inodes: Iterable[int], sockets: Sockets) -> tuple[set[str], tuple[int, ...]]:
    """(the names on which these sockets listen, the sockets that are connected to them)."""
    names = {sockets.listening[inode] for inode in inodes if inode in sockets.listening}
    clients = (inode for name in names for inode in sockets.clients.get(name, ()))
    return names, tuple(clients)


def find_connections(
    inodes: Iterable[int], listens: set[str], sockets: Sockets
) -> list[Connection]:
    """Connections that the process made itself, not those of its clients."""
    found = []
    for inode in inodes:
        if inode in sockets.streams:
            peer, port, address = sockets.streams[inode]
            if f"tcp:{port}" not in listens:
                found.append(Connection(peer, decode_address(address)))
        elif (
            name := sockets.names.get(sockets.peers.get(inode, 0), "")
        ) and not SERVICES.fullmatch(name):
            found.append(Connection(sockets.peers[inode], printed(name)))
    return found


def shown_listener(name: str) -> str:
    """`tcp:1435` is 5173; a unix socket is its name."""
    kind, _colon, where = name.partition(":")
    return str(int(where, 16)) if kind == "tcp" else printed(where)


def printed(name: str) -> str:
    """Abstract names begin with a zero byte, which /proc shows as @."""
    return name.replace("\0", "@")


def decode_address(text: str) -> str:
    """`0100007F:1435` is 127.0.0.1:5173: groups of four bytes, the last one first."""
    address, _colon, port = text.partition(":")
    data = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    if data[:12] == b"\0" * 10 + b"\xff\xff":
        data = data[12:]
    if len(data) == 4:
        return f"{'.'.join(map(str, data))}:{int(port, 16)}"
    groups = (f"{data[at] << 8 | data[at + 1]:x}" for at in range(0, 16, 2))
    return f"[{':'.join(groups)}]:{int(port, 16)}"
