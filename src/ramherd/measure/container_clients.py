"""Processes that use a container engine: containers that docker or podman starts for a run are
children of the engine, not of the run, and so are in no pen.

The kernel reports the peer of every unix socket (sock_diag). An engine is identified by the name of
its socket, a client by the inode of its own end.
"""

from collections.abc import Iterable

from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import read_descriptors
from ramherd.system.unix_diag import read_unix_sockets

ENGINE_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock")


def read_engine_clients() -> dict[int, str]:
    """Inode of each client's end -> the engine's socket it is connected to."""
    names: dict[int, str] = {}
    peers: dict[int, int] = {}
    for inode, name, peer in read_unix_sockets():
        if name.endswith(ENGINE_SOCKETS):
            names[inode] = name
            peers[inode] = peer
    return {peers[inode]: name for inode, name in names.items() if peers[inode]}


def find_client(pids: Iterable[int], clients: dict[int, str], proc: Root = PROC) -> str:
    """The engine that one of these processes is connected to, or ""."""
    wanted = {f"socket:[{inode}]": name for inode, name in clients.items()}
    for pid in pids:
        for target in (read_descriptors(pid, proc) or {}).values():
            if target in wanted:
                return wanted[target]
    return ""
