"""Real pipes, sockets and terminals of real processes: what is at the other side, what listens."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.model import ProcId
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.nouns import Details, PeerState
from ramherd.strays.read.listeners import read_sockets
from ramherd.strays.read.process_probe import Probe
from ramherd.system.pidfd import EndResult, close_processes, end_processes, open_processes
from ramherd.system.procfs import read_process, read_pss_bytes, read_table


class Sleepers:
    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *argv: str, **options: Any) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(argv or ["sleep", "1000"], **options)
        self.processes.append(process)
        return process


@pytest.fixture
def sleepers() -> Iterator[Sleepers]:
    made = Sleepers()
    yield made
    for process in made.processes:
        process.kill()
        process.wait()
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()


def details(pid: int) -> Details:
    return Probe(SoftwareTable().agents, read_sockets()).read_one(pid)


def test_a_pipe_has_its_other_side_or_not(sleepers: Sleepers) -> None:
    """POLLHUP for the reader, POLLERR for the writer."""
    process = sleepers.start(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    found = details(process.pid)
    assert (found.stdin, found.stdout) == (PeerState.LIVE, PeerState.LIVE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()

    found = details(process.pid)

    assert (found.stdin, found.stdout) == (PeerState.GONE, PeerState.GONE)
    assert found.stdin_inode > 0


def test_a_socket_has_its_other_side_or_not(sleepers: Sleepers) -> None:
    """Also with bytes in it that nobody has read."""
    ours, its = socket.socketpair()
    process = sleepers.start(stdin=its, stdout=its)
    its.close()
    assert details(process.pid).stdin is PeerState.LIVE
    ours.send(b"unread")
    ours.close()

    found = details(process.pid)

    assert (found.stdin, found.stdout) == (PeerState.GONE, PeerState.GONE)


def test_a_file_and_a_closed_descriptor_have_no_other_side(sleepers: Sleepers) -> None:
    """Nothing that could go away."""
    process = sleepers.start("sh", "-c", "exec sleep 1000 <&- >/dev/null")
    while (at := read_process(process.pid)) is not None and at.name != "sleep":
        pass

    found = details(process.pid)

    assert (found.stdin, found.stdout) == (PeerState.NONE, PeerState.NONE)


def test_a_terminal_is_seen_at_both_sides(sleepers: Sleepers) -> None:
    """The processes on it, and the process that keeps it."""
    master, slave = os.openpty()
    on = sleepers.start(stdin=slave, stdout=subprocess.DEVNULL)
    keeper = sleepers.start(stdin=master, stdout=subprocess.DEVNULL)
    os.close(master)
    os.close(slave)

    assert details(on.pid).on_terminal
    assert details(keeper.pid).keeps_terminal


def test_clients_of_a_listener_are_counted(sleepers: Sleepers) -> None:
    """By TCP and by unix socket; the client's own socket is known where it is on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = sleepers.start(stdin=subprocess.DEVNULL, pass_fds=[listener.fileno()])
        address = listener.getsockname()
    assert (details(process.pid).listens, details(process.pid).clients) == (True, ())

    with socket.create_connection(address) as client:
        assert details(process.pid).clients == (os.fstat(client.fileno()).st_ino,)


def test_windows_are_seen(sleepers: Sleepers, tmp_path: Path) -> None:
    """By the connection to the display's socket: an agent may open a browser for its user."""
    (tmp_path / ".X11-unix").mkdir()
    with socket.socket(socket.AF_UNIX) as display, socket.socket(socket.AF_UNIX) as client:
        display.bind(str(tmp_path / ".X11-unix/X7"))
        display.listen()
        client.connect(str(tmp_path / ".X11-unix/X7"))
        process = sleepers.start(pass_fds=[client.fileno()])
        with display.accept()[0]:
            assert details(process.pid).on_display
    assert not details(sleepers.start().pid).on_display


def test_marks_of_agents_and_nohup_are_seen(sleepers: Sleepers) -> None:
    """In the environment and in the mask of signals."""
    env = {**os.environ, "CLAUDECODE": "1", "CLAUDE_PID": "77", "RAMHERD_RUN": "r"}
    process = sleepers.start("nohup", "sleep", "1000", env=env, stdout=subprocess.DEVNULL)
    while (at := read_process(process.pid)) is not None and at.name != "sleep":
        pass

    found = details(process.pid)

    assert (found.marks, found.owner_pid, found.run, found.nohup) == (("claude",), 77, "r", True)


def test_a_process_that_has_gone_is_unreadable() -> None:
    """It proves nothing."""
    assert not details(1 << 22).readable
    assert read_pss_bytes(1 << 22) is None


def test_the_table_has_this_process_and_no_kernel_thread() -> None:
    """With its parent, owner and memory."""
    table = read_table()

    own = table[os.getpid()]
    assert (own.ppid, own.uid) == (os.getppid(), os.getuid())
    assert own.resident_bytes > 1 << 20
    assert all(process.name != "kthreadd" for process in table.values())


def test_a_pid_that_is_another_by_now_is_not_touched(sleepers: Sleepers) -> None:
    """The same number with another start."""
    process = sleepers.start()
    found = read_process(process.pid)
    assert found is not None
    stale = ProcId(found.id.pid, found.id.start_ticks - 1)

    opened = open_processes([stale, ProcId(1 << 22, 1)])

    assert opened == {}
    assert process.poll() is None


def test_term_then_kill_by_pidfd(sleepers: Sleepers) -> None:
    """One that ends, and one that does not want to."""
    kind = sleepers.start()
    # One process: a child of it would outlive it for a moment, and nobody here waits for that.
    command = ("sh", "-c", "trap '' TERM; echo up; exec sleep 1000")
    deaf = sleepers.start(*command, stdout=subprocess.PIPE)
    assert deaf.stdout is not None
    deaf.stdout.readline()
    procs = [found.id for pid in (kind.pid, deaf.pid) if (found := read_process(pid)) is not None]

    opened = open_processes(procs)
    try:
        outcomes = end_processes(opened, 0.2)
    finally:
        close_processes(opened)

    assert [outcomes[proc] for proc in procs] == [EndResult.ENDED, EndResult.KILLED]
