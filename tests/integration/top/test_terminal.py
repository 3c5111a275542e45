"""On a real terminal: the screen is restored after every end."""

import os
import signal
import sys
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, need, ours
from support.screens import Screen, open_screen

TOP = [sys.executable, "-m", "ramherd", "top"]
# Whatever was on the screen before is there again.
BEFORE = "before top"
SHELL = ["sh", "-c", f'echo {BEFORE}; "$@"', "sh", *TOP]


@pytest.fixture
def socket(ramherd: Ramherd, tmp_path: Path) -> Path:
    need("tmux", "tmux")
    ramherd.env.pop("TERM", None)
    return tmp_path / "tmux"


def find_tops() -> list[int]:
    """Parent first, then the child that draws."""
    return sorted(pid for pid in ours() if read_words(pid)[-2:] == [b"top", b""] and is_python(pid))


def is_python(pid: int) -> bool:
    return read_words(pid)[0] == sys.executable.encode()


def read_words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def check_restored(screen: Screen, status: int) -> str:
    lines = screen.await_text(f"exit status {status}")
    assert lines[0] == BEFORE
    assert screen.flag("cursor_flag")
    assert screen.flag("wrap_flag")
    for mode in ("mouse_any_flag", "mouse_all_flag", "alternate_on"):
        assert not screen.flag(mode), mode
    return "\n".join(lines)


def test_q_restores_the_screen(ramherd: Ramherd, socket: Path) -> None:
    """And nothing is left on it."""
    with open_screen(SHELL, ramherd.env, socket) as screen:
        screen.await_text("nothing runs")
        assert screen.flag("alternate_on")
        screen.type("q")
        assert check_restored(screen, 0).splitlines()[1] == "exit status 0"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_screen(ramherd: Ramherd, socket: Path, number: int) -> None:
    """Sent to the process that a user finds first: it passes it on."""
    with open_screen(SHELL, ramherd.env, socket) as screen:
        screen.await_text("nothing runs")
        os.kill(find_tops()[0], number)
        check_restored(screen, 0)


def test_a_kill_restores_the_screen(ramherd: Ramherd, socket: Path) -> None:
    """As the kernel does when memory is short: one line reports it."""
    with open_screen(SHELL, ramherd.env, socket) as screen:
        screen.await_text("nothing runs")
        os.kill(find_tops()[1], signal.SIGKILL)
        text = check_restored(screen, 1)
        assert "ramherd: the screen was ended by SIGKILL" in text


def test_a_defect_is_one_line_on_a_restored_screen(
    ramherd: Ramherd, socket: Path, tmp_path: Path
) -> None:
    """No page of a traceback; `--debug` prints it."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'top' in sys.argv or 'top' in sys.orig_argv:\n"
        "    import ramherd.top.source as source\n"
        "    source.TopSource.read = lambda self: 1 / 0\n"
    )
    ramherd.env["PYTHONPATH"] = f"{broken}:{ramherd.env.get('PYTHONPATH', '')}"
    with open_screen(SHELL, ramherd.env, socket) as screen:
        text = check_restored(screen, 70)
        assert "a bug: ZeroDivisionError" in text
        assert "Traceback" not in text


def test_it_is_resized_and_goes_on(ramherd: Ramherd, socket: Path) -> None:
    """From small to large, and to almost nothing."""
    with open_screen(SHELL, ramherd.env, socket) as screen:
        screen.await_text("nothing runs")
        for _round in range(3):
            for size in ((200, 60), (20, 5), (2, 2), (80, 24)):
                screen.resize(*size)
            screen.await_lines(lambda lines: len(lines) > 20 and "│" not in lines[8], "one panel")
        screen.type("q")
        check_restored(screen, 0)


def test_a_pipe_is_refused(ramherd: Ramherd) -> None:
    """With what a script uses instead."""
    done = ramherd.run("top")

    assert done.returncode == 2
    assert done.stderr == (
        "ramherd: top needs a terminal\n"
        "  hint: in a script: ramherd status --json, or ramherd jobs --json\n"
    )


def test_nothing_is_left_after_the_window_closes(ramherd: Ramherd, socket: Path) -> None:
    """The terminal is gone, and so is top."""
    with open_screen(SHELL, ramherd.env, socket) as screen:
        screen.await_text("nothing runs")
    await_(lambda: not find_tops(), "the end of top")
