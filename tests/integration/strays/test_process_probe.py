"""Real pipes, sockets and terminals of real processes: what is at the other side, what listens."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import await_
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
    listens = (str(address[1]),)
    assert (details(process.pid).listens, details(process.pid).clients) == (listens, ())

    with socket.create_connection(address) as client:
        assert details(process.pid).clients == (os.fstat(client.fileno()).st_ino,)


def test_connections_that_it_made_are_seen(sleepers: Sleepers, tmp_path: Path) -> None:
    """With the other end where it is on this machine; services of a desktop do not count."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as far,
        socket.socket(socket.AF_UNIX) as docker,
        socket.socket(socket.AF_UNIX) as bus,
    ):
        process = sleepers.start(pass_fds=[client.fileno()])
        served = sleepers.start(pass_fds=[listener.fileno(), far.fileno()])
        (found,) = details(process.pid).connections
        assert found.peer == os.fstat(far.fileno()).st_ino
        assert found.to == f"127.0.0.1:{listener.getsockname()[1]}"
        assert details(served.pid).connections == ()
        for server, name in ((docker, "docker.sock"), (bus, "bus")):
            server.bind(str(tmp_path / name))
            server.listen()
        for server, count in ((docker, 1), (bus, 0)):
            with socket.socket(socket.AF_UNIX) as unix:
                unix.connect(server.getsockname())
                with server.accept()[0]:
                    process = sleepers.start(pass_fds=[unix.fileno()])
                    assert len(details(process.pid).connections) == count


def test_files_that_it_writes_are_seen(sleepers: Sleepers, tmp_path: Path) -> None:
    """Not those that it reads, those of its agent, npm's log, or a device."""
    own, read = tmp_path / "claude-notes/train.log", tmp_path / "data"
    of_agent = tmp_path / "claude-0/-home-me/1e0f28-a66d/tasks/x.output"
    log = tmp_path / ".npm/_logs/debug.log"
    for path in (own, read, of_agent, log):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    env = {**os.environ, "CLAUDECODE": "1"}
    with (
        own.open("a") as one,
        read.open() as two,
        of_agent.open("a") as three,
        log.open("a") as four,
    ):
        fds = [file.fileno() for file in (one, two, three, four)]
        process = sleepers.start(pass_fds=fds, stdout=subprocess.DEVNULL, env=env)

    # For a moment after exec its environment cannot be read.
    await_(lambda: details(process.pid).marks, "its environment")
    assert details(process.pid).writes == (str(own),)


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
    env["RAMHERD_KEEP"] = "1"
    process = sleepers.start("nohup", "sleep", "1000", env=env, stdout=subprocess.DEVNULL)
    while (at := read_process(process.pid)) is not None and at.name != "sleep":
        pass

    found = details(process.pid)

    assert (found.marks, found.owner_pid, found.run, found.nohup) == (("claude",), 77, "r", True)
    assert found.keep


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
