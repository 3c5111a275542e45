"""`ramherd exec`: a program on the user's terminal, as if it ran bare, and cleared when it ends."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.conftest import DEADLINE_S, Ramherd, await_, our_cgroups, ours
from ramherd.system.procfs import read_processes
from support.terminals import Terminal, open_terminal

SHELL = ["bash", "--norc", "--noprofile", "-i"]
SIZE_TELLER = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGWINCH, lambda *_: print(*reversed(os.get_terminal_size(0))))
print("ready", flush=True)
while True:
    signal.pause()
"""
# No other test sleeps for this long.
NAP_S = f"300.{os.getpid()}"
STUBBORN = "setsid sh -c \"trap '' TERM HUP; sleep 300; sleep 300\" &"
Open = Callable[..., Terminal]


def exec_of(ramherd: Ramherd, *options: str) -> list[str]:
    """`ramherd exec` on the pen under test."""
    return [sys.executable, "-m", "ramherd", "exec", "--pen", ramherd.pen, *options, "--"]


def typed(ramherd: Ramherd, *options: str) -> str:
    return " ".join(exec_of(ramherd, *options))


@pytest.fixture
def terminal() -> Iterator[Open]:
    """Opens terminals, and closes them with whatever still runs on them."""
    opened: list[Terminal] = []

    def open_(command: list[str], ramherd: Ramherd) -> Terminal:
        env = {**ramherd.env, "PS1": "ready$ ", "TERM": "dumb"}
        opened.append(open_terminal(command, env))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()
        each.wait()
    await_(lambda: not ours(), "what ran on the terminals has ended")


def shell(terminal: Open, ramherd: Ramherd) -> Terminal:
    """An interactive shell, with a command that starts a session."""
    made = terminal(SHELL, ramherd)
    made.type(f'herd() {{ {typed(ramherd, "--grace", "1s")} "$@"; }}\n')
    made.expect("ready$ ")
    made.expect("ready$ ")
    return made


def in_store(ramherd: Ramherd) -> tuple[str, str, int | None, int | None]:
    """(job's state, run's end, exit code, signal) of the newest session; its herd is closed."""
    db = sqlite3.connect(ramherd.state / "ramherd/ramherd.db")
    try:
        open_herds = db.execute("SELECT count(*) FROM herds WHERE ended_s IS NULL").fetchone()
        assert open_herds == (0,)
        assert db.execute("SELECT count(*) FROM pens").fetchone() == (0,)
        found: tuple[str, str, int | None, int | None] = db.execute(
            "SELECT state, end, exit_code, signal FROM runs JOIN jobs ON jobs.id = runs.job"
            " ORDER BY started_s DESC LIMIT 1"
        ).fetchone()
    finally:
        db.close()
    return found


def run(ramherd: Ramherd, *command: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return ramherd.run("exec", "--pen", ramherd.pen, *command, stdin=stdin)


def test_the_program_sees_a_new_size(each_ramherd: Ramherd, terminal: Open) -> None:
    """SIGWINCH arrives, and the terminal has the new size by then."""
    window = terminal([*exec_of(each_ramherd), sys.executable, "-c", SIZE_TELLER], each_ramherd)
    window.expect("ready")
    window.resize(33, 111)
    window.expect("33 111")
    window.type("\x03")
    assert window.wait() == 128 + signal.SIGINT


def test_ctrl_c_interrupts_the_program_only(each_ramherd: Ramherd, terminal: Open) -> None:
    """A program that handles it goes on, and so does its session."""
    # Again and again: a trap that comes just before a read waits until that is over.
    wait = "until read -t 0.2 line; do :; done"
    code = f"trap 'echo caught' INT; echo ready; {wait}; echo got $line; exit 7"
    window = terminal([*exec_of(each_ramherd), "bash", "-c", code], each_ramherd)
    window.expect("ready")
    window.type("\x03")
    window.expect("caught")
    window.type("typed\n")
    window.expect("got typed")
    assert window.wait() == 7


def test_ctrl_z_suspends_and_fg_continues(each_ramherd: Ramherd, terminal: Open) -> None:
    """The shell gets its terminal back, and the program gets it again."""
    window = shell(terminal, each_ramherd)
    window.type("herd sh -c 'echo begin; read line; echo got $line'\n")
    window.expect("begin\r\n")
    window.type("\x1a")
    window.expect("Stopped")
    window.expect("ready$ ")
    window.type("fg\n")
    window.type("hello\n")
    window.expect("got hello")
    window.expect("ready$ ")
    window.type("exit 0\n")
    assert window.wait() == 0


def test_a_program_that_stops_itself_suspends(each_ramherd: Ramherd, terminal: Open) -> None:
    """Full-screen programs read Ctrl-Z as a key and stop themselves alone."""
    window = shell(terminal, each_ramherd)
    window.type("herd sh -c 'kill -STOP $$; echo went on; exit 5'\n")
    window.expect("Stopped")
    window.expect("ready$ ")
    window.type("fg; echo code $?\n")
    window.expect("went on")
    window.expect("code 5")
    window.type("exit 0\n")
    assert window.wait() == 0


def test_a_program_that_ignores_ctrl_z_goes_on(each_ramherd: Ramherd, terminal: Open) -> None:
    """We stop when the program has stopped, not when it was asked to."""
    code = "trap '' TSTP; echo ready; read line; echo got $line"
    window = terminal([*exec_of(each_ramherd), "bash", "-c", code], each_ramherd)
    window.expect("ready")
    window.type("\x1a")
    window.type("still here\n")
    window.expect("got still here")
    assert window.wait() == 0


def test_ctrl_d_is_the_end_of_input(each_ramherd: Ramherd, terminal: Open) -> None:
    """EOF reaches the program."""
    window = terminal([*exec_of(each_ramherd), "sh", "-c", "cat; echo ended"], each_ramherd)
    window.type("text\n\x04")
    window.expect("text\r\ntext\r\nended")
    assert window.wait() == 0


@pytest.mark.parametrize("with_shell", [True, False], ids=["shell", "alone"])
def test_a_closed_window_ends_everything(
    each_ramherd: Ramherd, terminal: Open, with_shell: bool
) -> None:
    """Whatever ignores HUP and TERM gets KILL after the grace."""
    code = f"trap '' HUP; {STUBBORN} echo begin; sleep 300; sleep 300"
    if with_shell:
        window = shell(terminal, each_ramherd)
        window.type(f"herd bash -c '{code}'\n")
    else:
        window = terminal(
            [*exec_of(each_ramherd, "--grace", "1s"), "bash", "-c", code], each_ramherd
        )
    window.expect("begin\r\n")
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    window.close()
    await_(lambda: not ours(), "everything has ended")
    assert in_store(each_ramherd)[:2] == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("code", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_the_programs(each_ramherd: Ramherd, code: str, status: int) -> None:
    """A signal N is 128+N; nothing of our own is printed."""
    done = run(each_ramherd, "--", "sh", "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    number = status - 128 if status > 128 else None
    state = "failed" if status else "done"
    assert in_store(each_ramherd) == (state, state, None if number else status, number)


def test_pipes_pass_untouched(each_ramherd: Ramherd) -> None:
    """Input, output and errors, of any size, without a terminal."""
    text = "".join(f"{number}\n" for number in range(100_000))
    done = run(each_ramherd, "--", "sh", "-c", "tee /dev/stderr", stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, text, text)


def test_a_reader_sees_the_end_that_the_program_makes(each_ramherd: Ramherd) -> None:
    """Nobody of ours holds the output open when the program has closed it."""
    command = [*exec_of(each_ramherd), "sh", "-c", "echo last; exec sleep 300 >&-"]
    process = subprocess.Popen(command, env=each_ramherd.env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        assert out.read() == b"last\n"
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 128 + signal.SIGTERM


def test_input_from_a_pipe_and_output_on_a_terminal(each_ramherd: Ramherd, terminal: Open) -> None:
    """Ctrl-C reaches the program; the shell goes on when it has ended."""
    window = shell(terminal, each_ramherd)
    # Again and again: a trap that comes just before a read waits until that is over.
    wait = "while :; do read -t 0.2 line </dev/tty; done"
    code = f"cat; trap 'exit 9' INT; test -t 1 && echo is a terminal; {wait}"
    window.type(f'echo piped | herd bash -c "{code}"; echo code $?\n')
    window.expect("piped\r\nis a terminal\r\n")
    window.type("\x03")
    window.expect("code 9")
    window.type("exit 0\n")
    assert window.wait() == 0


def test_a_pipeline_is_one_job(each_ramherd: Ramherd, terminal: Open) -> None:
    """What reads our output may use the terminal as well: `| less`."""
    window = shell(terminal, each_ramherd)
    window.type("herd echo first | bash -c 'cat; read line </dev/tty; echo got $line'\n")
    window.expect("first\r\n")
    window.type("typed\n")
    window.expect("got typed")
    window.type("exit 0\n")
    assert window.wait() == 0


def test_leftovers_are_ended(each_ramherd: Ramherd) -> None:
    """Also in sessions of their own, with a cleaned environment, and deaf to TERM."""
    code = f"setsid env -i sleep {NAP_S} & {STUBBORN} sleep 0.1; exit 3"
    assert run(each_ramherd, "--", "sh", "-c", code).returncode == 3
    assert not ours()
    assert not our_naps()


def our_naps() -> list[int]:
    """Those that `env -i` hides from `ours`."""
    return [proc.id.pid for proc in read_processes() if is_nap(proc.id.pid)]


def is_nap(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text() == f"sleep\0{NAP_S}\0"
    except (OSError, ValueError):
        return False


def test_the_memory_limit_holds(each_ramherd: Ramherd) -> None:
    """Exit 137, and one line that says the limit and the peak."""
    code = "import time; b = b'x' * (200 << 20); time.sleep(300)"
    done = run(each_ramherd, "--memory-limit", "64MiB", "--", sys.executable, "-c", code)
    assert done.returncode == 137
    assert "killed at its memory_limit of 64 MiB (peak " in done.stderr
    assert done.stderr.count("\n") == 1
    assert in_store(each_ramherd)[:2] == ("failed", "limit_kill")


def test_modes_are_put_back_after_a_kill(each_ramherd: Ramherd, terminal: Open) -> None:
    """A killed program cannot do it, and a shell does not see that it was killed."""
    window = terminal(
        [*exec_of(each_ramherd), "bash", "-c", "stty raw -echo; kill -9 $$"], each_ramherd
    )
    assert window.wait() == 137
    assert window.echoes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_whole_pen(each_ramherd: Ramherd, number: int) -> None:
    """TERM, the grace, KILL; then 128+N."""
    herd = each_ramherd.start(
        *exec_of(each_ramherd, "--grace", "0.5s")[3:], "sh", "-c", f"{STUBBORN} sleep 300"
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    herd.signal(number)
    assert herd.wait() == 128 + number
    assert not ours()


def test_a_suspended_session_can_be_ended(each_ramherd: Ramherd) -> None:
    """What is stopped hears TERM."""
    herd = each_ramherd.start(*exec_of(each_ramherd)[3:], "sh", "-c", "kill -STOP $$; sleep 300")
    await_(lambda: stopped(herd.process.pid), "we are stopped too")
    herd.signal(signal.SIGTERM)
    herd.signal(signal.SIGCONT)
    assert herd.wait() == 128 + signal.SIGTERM


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_after_kill_9_the_guard_clears(each_ramherd: Ramherd) -> None:
    """Within the grace, pens and all; the store says that it was lost."""
    herd = each_ramherd.start(
        *exec_of(each_ramherd, "--grace", "0.5s")[3:], "sh", "-c", f"{STUBBORN} sleep 300"
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    herd.signal(signal.SIGKILL)
    herd.wait()
    await_(lambda: not ours(), "the guard ends all, then itself")
    assert not our_cgroups(each_ramherd.state)
    assert in_store(each_ramherd)[:2] == ("cancelled", "lost")
    assert not list(each_ramherd.state.glob("ramherd/runs/*/tmp"))


def test_a_broken_store_leaves_nothing(each_ramherd: Ramherd) -> None:
    """What the guard knew before the program started is enough to clear it."""
    database = each_ramherd.state / "ramherd/ramherd.db"
    herd = each_ramherd.start(
        *exec_of(each_ramherd, "--grace", "0.5s")[3:], "sh", "-c", f"{STUBBORN} sleep 300"
    )
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    made = our_cgroups(each_ramherd.state)
    assert made or each_ramherd.pen == "polling"
    for path in database.parent.glob("ramherd.db*"):
        path.unlink()
    database.write_text("no database, though long enough for one " * 10)
    done = each_ramherd.run(*exec_of(each_ramherd)[3:], "true")
    assert done.returncode == 3
    assert "file is not a database" in done.stderr

    herd.signal(signal.SIGKILL)
    herd.wait()
    await_(lambda: not ours(), "the guard ends all, then itself")
    assert not [path for path in made if path.exists()]
    # Each of both guards reported it.
    assert each_ramherd.keeper_errors.count("file is not a database\n") == 2
    database.unlink()
    (database.parent / "keeper.err").unlink()


@pytest.mark.parametrize("verb", ["exec", "run"])
def test_the_next_start_clears_what_both_left(each_ramherd: Ramherd, verb: str) -> None:
    """With ramherd and its guard dead nobody is there to do it before."""
    herd = each_ramherd.start(*exec_of(each_ramherd)[3:], "sh", "-c", f"{STUBBORN} sleep 300")
    await_(lambda: len(ours("RAMHERD_RUN")) >= 4, "the program and its children")
    herd.process.send_signal(signal.SIGSTOP)
    for pid in set(ours()) - set(ours("RAMHERD_RUN")):
        os.kill(pid, signal.SIGKILL)
    herd.wait()
    assert ours("RAMHERD_RUN")
    done = each_ramherd.run(verb, "--pen", each_ramherd.pen, "--", "echo", stdin="next\n")
    assert done.returncode == 0, done.stderr
    assert not ours()
    assert not our_cgroups(each_ramherd.state)


@pytest.mark.parametrize(
    ("command", "code", "what"),
    [
        ("no-such-program", 127, "No such file or directory"),
        ("/etc/passwd", 126, "Permission denied"),
    ],
)
def test_what_cannot_start(each_ramherd: Ramherd, command: str, code: int, what: str) -> None:
    """As shells say it: 127 not found, 126 not executable, and one line."""
    done = run(each_ramherd, "--", command)
    assert done.returncode == code
    assert done.stderr == f"ramherd: cannot start {command}: {what}\n"
    assert in_store(each_ramherd)[:2] == ("failed", "failed")


def test_a_directory_of_path_that_shows_nothing(ramherd: Ramherd, tmp_path: Path) -> None:
    """One that may not be searched, or holds a directory of that name, makes a missing program no
    less missing: 127.
    """
    (tmp_path / "closed").mkdir(mode=0o000)
    (tmp_path / "open/no-such-program").mkdir(parents=True)
    path = f"{tmp_path}/closed:{tmp_path}/open:{ramherd.env['PATH']}"
    ramherd.env["PATH"] = path
    done = run(ramherd, "--", "no-such-program")
    assert done.returncode == 127
    assert done.stderr == "ramherd: cannot start no-such-program: No such file or directory\n"
