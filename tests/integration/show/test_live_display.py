"""On a real terminal: the progress display, a window that is resized, and one that closes."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, need, ours
from ramherd.show.live_display import HEAD
from support.screens import open_screen
from support.terminals import Terminal, open_terminal

RAMHERD = [sys.executable, "-m", "ramherd"]
# A second or so, with lines of output in between.
SHORT = 'seq 24 | "$@" run --max-parallel 4 --memory 10MiB -- sh -c "echo out-{}; sleep 0.2; exit"'
SHORT_HERD = ["sh", "-c", SHORT, "sh", *RAMHERD]
COLOR = re.compile(r"\x1b\[\d*m")


def make_jobs(folder: Path, names: str, until: Path) -> list[str]:
    """The command that runs a job for each name: it prints its name, and lasts until the file is
    there.
    """
    jobs = folder / "jobs.toml"
    script = f"echo hello; while [ ! -e {until} ]; do sleep 0.05; done"
    jobs.write_text("".join(f'[[job]]\nname = "{name}"\ncommand = "{script}"\n' for name in names))
    return [*RAMHERD, "run", str(jobs), "--grace", "1s"]


@pytest.fixture
def socket(ramherd: Ramherd, tmp_path: Path) -> Path:
    """For tmux, which sets a TERM of its own."""
    need("tmux", "tmux")
    ramherd.env.pop("TERM", None)
    return tmp_path / "tmux"


def read_all(terminal: Terminal) -> str:
    """Until the other end is closed, which Linux tells as EIO."""
    data = b""
    try:
        while chunk := os.read(terminal.fd, 1 << 16):
            data += chunk
    except OSError:
        pass
    terminal.close()
    return data.decode()


def open_sized(ramherd: Ramherd, command: list[str], **env: str) -> Terminal:
    """60 columns, 12 rows."""
    terminal = open_terminal(command, {**ramherd.env, "TERM": "xterm", **env})
    terminal.resize(12, 60)
    return terminal


def test_no_frame_lacks_its_table(ramherd: Ramherd, socket: Path) -> None:
    """From the first one to the summary, which takes its place; the scrollback has none of it."""
    with open_screen(SHORT_HERD, ramherd.env, socket) as screen:
        screen.await_text(HEAD)
        frames = list(screen.frames_until("jobs done"))
        screen.await_text("exit status 0")
        history = screen.history()

    assert [frame for frame in frames if HEAD not in frame] == []
    assert sorted(re.findall(r"out-\d+$", history, re.MULTILINE)) == sorted(
        f"out-{n}" for n in range(1, 25)
    )
    assert "24 of 24 jobs done in " in history
    assert "running" not in history


def test_output_stays_above_the_table(ramherd: Ramherd, socket: Path, tmp_path: Path) -> None:
    """Each line once and whole, with nothing of the table beside it."""
    until = tmp_path / "until"
    command = make_jobs(tmp_path, "ab", until)
    with open_screen(command, ramherd.env, socket) as screen:
        running = screen.await_lines(lambda lines: "b | hello" in lines, "both lines")
        until.touch()
        screen.await_text("exit status 0")
        history = screen.history().splitlines()

    assert running.index(HEAD) > running.index("b | hello")
    assert sorted(history[:2]) == ["a | hello", "b | hello"]
    assert history[2].startswith("2 of 2 jobs done in ")


def test_a_narrowed_window_has_no_broken_line(
    ramherd: Ramherd, socket: Path, tmp_path: Path
) -> None:  # fmt: skip
    """What was wrapped is drawn over, and the table is there once: in the scrollback too."""
    until = tmp_path / "until"
    with open_screen(make_jobs(tmp_path, "abcd", until), ramherd.env, socket, 130, 30) as screen:
        wide = screen.await_lines(lambda lines: is_table("\n".join(lines), runs=4), "the table")
        for columns in (70, 50, 100):
            screen.resize(columns, 30)
            await_(lambda: is_table(screen.history(), runs=4), f"a table of {columns} columns")
        until.touch()
        screen.await_text("exit status 0")
        history = screen.history()

    assert len(wide[-6]) > 100
    assert "running" not in history
    assert "MEMORY" not in history


def is_table(history: str, runs: int) -> bool:
    """A line of output for each run, two of numbers, the head, and the runs: nothing else."""
    lines = history.splitlines()
    if len(lines) != 7 + runs or lines[6] != HEAD:
        return False
    names = all(line.endswith(tuple("abcd")) for line in lines[7:])
    return "running" in lines[4] and " of " in lines[5] and names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_terminal_is_left_as_it_was(
    ramherd: Ramherd, socket: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Whatever ends ramherd: the cursor is shown, lines wrap, and no colour is left."""
    pid = tmp_path / "pid"
    command = ["sh", "-c", f'echo $$ > {pid}; exec "$@"', "sh"]
    jobs = make_jobs(tmp_path, "ab", tmp_path / "never")
    with open_screen([*command, *jobs], ramherd.env, socket) as screen:
        screen.await_text("2 running")
        os.kill(int(pid.read_text()), number)
        screen.await_text("exit status ")
        assert screen.flag("cursor_flag")
        assert screen.flag("wrap_flag")
        lines = screen.lines()
    await_(lambda: not ours("RAMHERD_RUN"), "the runs have ended")
    if number != signal.SIGKILL:
        assert not any(HEAD in line for line in lines)


def test_colour_is_for_those_who_want_it(ramherd: Ramherd) -> None:
    """On a terminal; NO_COLOR draws the same table without."""
    colored = read_all(open_sized(ramherd, SHORT_HERD))
    plain = read_all(open_sized(ramherd, SHORT_HERD, NO_COLOR="1"))

    assert "\x1b[32m[" in colored
    assert HEAD in plain
    assert not COLOR.search(plain)


def test_a_dumb_terminal_gets_lines(ramherd: Ramherd) -> None:
    """Its cursor does not move: each change of a state has a line."""
    text = read_all(open_sized(ramherd, SHORT_HERD, TERM="dumb"))

    assert "\x1b" not in text
    assert text.count(" start     ") == text.count(" done      ") == 24
    assert "24 of 24 jobs done" in text


def test_a_closed_window_ends_everything(ramherd: Ramherd) -> None:
    """The terminal hangs up: SIGHUP, and nothing is left."""
    terminal = open_sized(ramherd, [*RAMHERD, "drill", "--agents", "4", "--grace", "1s"])
    await_(lambda: ours("RAMHERD_RUN"), "runs")
    terminal.close()
    assert terminal.process.wait(20) == 130
