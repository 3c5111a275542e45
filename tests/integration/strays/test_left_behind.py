"""What tools of a session left behind, with real processes."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from integration.conftest import await_
from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import ProcId
from ramherd.strays.judge.orphan_proofs import EndedSession
from ramherd.strays.left_behind import end_left_behind, find_left_behind
from ramherd.system.pidfd import close_processes, end_processes, open_processes
from ramherd.system.procfs import TICKS_PER_S, is_running, read_process, read_processes
from support.terminals import open_terminal

GRACE_S = 2.0
POLICY = StrayPolicy()
# No other test, in whichever process, has sessions of this name.
SESSION = f"sess-{os.getpid()}"
TAG = f"CLAUDE_CODE_SESSION_ID={SESSION}"
Start = Callable[[str], tuple[ProcId, list[ProcId]]]


def identify(pid: int) -> ProcId:
    found = read_process(pid)
    assert found is not None
    return found.id


@pytest.fixture
def start() -> Iterator[Start]:
    """A shell that stands for a session, and the processes whose pids it printed."""
    shells: list[subprocess.Popen[str]] = []
    others: list[ProcId] = []

    def start_one(code: str) -> tuple[ProcId, list[ProcId]]:
        pipe = subprocess.PIPE
        shell = subprocess.Popen(
            ["sh", "-c", f"{code} echo; read line"], stdin=pipe, stdout=pipe, text=True
        )
        shells.append(shell)
        assert shell.stdout is not None
        pids = list(iter(shell.stdout.readline, "\n"))
        found = [identify(int(pid)) for pid in pids]
        others.extend(found)
        return identify(shell.pid), found

    yield start_one
    for shell in shells:
        shell.kill()
        shell.communicate()
    end(others)


def end(processes: Iterable[ProcId]) -> int:
    opened = open_processes(processes)
    try:
        return len(end_processes(opened, GRACE_S))
    finally:
        close_processes(opened)


def orphan(variables: str = TAG, command: str = "sleep 300") -> str:
    """Its parent, a subshell, has ended before its pid is printed."""
    return f"echo $( {variables} setsid {command} >/dev/null 2>&1 & echo $!);"


def child(variables: str = TAG) -> str:
    return f"{variables} setsid sleep 300 >/dev/null 2>&1 & echo $!;"


def found_by(root: ProcId, since_s: float = 0.0, before_s: float | None = None) -> list[ProcId]:
    return find_left_behind(EndedSession(root, SESSION, since_s, before_s), POLICY).found


def test_what_lost_its_parent_is_found_and_ended(start: Start) -> None:
    """With all below it, whatever those made of their environment."""
    family = "sh -c 'env -i sleep 300 & wait'"
    root, (left,) = start(orphan(command=family))
    await_(lambda: len(found_by(root)) == 2, "the orphan and its child")
    found = found_by(root)
    assert left in found
    assert end(found) == 2
    assert not any(is_running(one) for one in found)
    assert found_by(root) == []


def test_nothing_else_is_found(start: Start) -> None:
    """A child of the session, one of another session, one of a run, one without a tag."""
    root, _all = start(
        child()
        + orphan("CLAUDE_CODE_SESSION_ID=sess-2")
        + orphan(f"{TAG} RAMHERD_RUN=01")
        + orphan("")
    )
    assert found_by(root) == []


def test_strays_of_all_sessions_are_counted(start: Start) -> None:
    """Whichever session left them; what still has its parent is none."""
    root, (left, own) = start(orphan("CLAUDE_CODE_SESSION_ID=sess-9") + child())
    assert left in find_left_behind(EndedSession(root), POLICY).found
    assert own not in find_left_behind(EndedSession(root), POLICY).found


def test_a_second_claude_of_the_same_session_keeps_its_tools(start: Start) -> None:
    """Resumed in two windows: what has a living parent there is not left behind."""
    first, _none = start("")
    _second, _children = start(child())
    assert found_by(first) == []


def test_only_what_began_in_the_time_is_found(start: Start) -> None:
    """From the start of the subagent on, and before any other that still runs."""
    root, (left,) = start(orphan())
    began_s = left.start_ticks / TICKS_PER_S
    assert found_by(root, began_s) == [left]
    assert found_by(root, began_s + 1) == []
    assert found_by(root, 0.0, began_s) == []
    assert found_by(root, 0.0, began_s + 1) == [left]


def test_what_has_a_terminal_is_spared(start: Start, tmp_path: Path) -> None:
    """Somebody may sit there."""
    root, _none = start("")
    note = tmp_path / "pid"
    code = f"(sleep 300 & echo $! > {note}); read line"
    variable, _, value = TAG.partition("=")
    window = open_terminal(["sh", "-c", code], {**os.environ, variable: value})
    try:
        pid = int(await_(lambda: note.exists() and note.read_text(), "the pid"))
        assert found_by(root) == []
        assert is_running(identify(pid))
    finally:
        os.kill(pid, 9)
        window.close()


def test_one_that_ignores_term_is_killed(start: Start) -> None:
    """TERM, the grace, KILL; and so is what it started in between."""
    command = "sh -c 'trap \"\" TERM; sleep 300 & while :; do sleep 1; done'"
    root, (left,) = start(orphan(command=command))
    await_(lambda: len(found_by(root)) == 3, "the shell and two sleeps")
    assert end_left_behind(EndedSession(root, SESSION), GRACE_S, POLICY) >= 2
    assert not is_running(left)
    assert found_by(root) == []


def test_a_pid_that_is_another_by_now_is_not_touched(start: Start) -> None:
    """It is looked at again once it is held."""
    _root, (left,) = start(orphan())
    assert end([left._replace(start_ticks=left.start_ticks - 1)]) == 0
    assert is_running(left)


SERVER = """\
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
client, _ = server.accept()
time.sleep(300)
"""


def test_a_server_is_spared_while_it_listens(start: Start, tmp_path: Path) -> None:
    """With a client or without: a tool may have started it for its user."""
    code, path = tmp_path / "server.py", tmp_path / "socket"
    code.write_text(SERVER)
    root, (left,) = start(orphan(command=f"{sys.executable} {code} {path}"))
    await_(path.exists, "the socket")
    with socket.socket(socket.AF_UNIX) as client:
        await_(lambda: client.connect_ex(str(path)) == 0, "a connection")
        assert found_by(root) == []
    assert end_left_behind(EndedSession(root, SESSION), GRACE_S, POLICY) == 0
    assert is_running(left)


WORK = {
    "busy": "while True: pass",
    "writes": "import sys, time; file = open(sys.argv[1], 'w'); time.sleep(300)",
}


@pytest.mark.parametrize("work", WORK)
def test_a_job_at_work_is_left_to_its_user(start: Start, tmp_path: Path, work: str) -> None:
    """`python train.py &` outlives the session that started it; so does the shell above it."""
    code = tmp_path / "train.py"
    code.write_text(WORK[work])
    command = f"sh -c '{sys.executable} {code} {tmp_path}/model; true'"
    root, (left,) = start(orphan(command=command))
    await_(lambda: below(left), "the job")
    if work == "writes":
        await_((tmp_path / "model").exists, "its file")

    assert end_left_behind(EndedSession(root, SESSION), GRACE_S, POLICY) == 0

    assert is_running(left)
    end(below(left))


def below(shell: ProcId) -> list[ProcId]:
    return [one.id for one in read_processes() if one.ppid == shell.pid and one.name != "sh"]


@pytest.mark.parametrize(
    ("variables", "keep"), [(f"{TAG} RAMHERD_KEEP=1", ()), (TAG, ("sleep",))], ids=["var", "key"]
)
def test_what_the_user_keeps_is_not_ended(
    start: Start, variables: str, keep: tuple[str, ...]
) -> None:
    """By a variable, or by `stray_keep`."""
    root, (left,) = start(orphan(variables))

    assert end_left_behind(EndedSession(root, SESSION), GRACE_S, StrayPolicy(keep=keep)) == 0
    assert is_running(left)
