"""A program on a screen of tmux: a real terminal emulator, whose frames can be read and resized."""

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.conftest import DEADLINE_S, await_

# Lines that have left the screen at its top are kept so far back.
HISTORY_LINES = 2000


class Screen:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path, env: dict[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self._env = env

    def open(self, command: list[str], columns: int, rows: int) -> None:
        """The window stays when the command has ended; its last line says so. Ctrl-C is for the
        command alone.
        """
        shell = f"trap : INT; {shlex.join(command)}; echo exit status $?; exec sleep 600"
        size = ["-x", str(columns), "-y", str(rows)]
        self._call("new-session", "-d", *size, "sh", "-c", shell)

    def lines(self) -> list[str]:
        """What is on the screen, without the empty lines at its end."""
        return self._call("capture-pane", "-p").rstrip("\n").split("\n")

    def history(self) -> str:
        """The same with all that has left the screen at its top."""
        return self._call("capture-pane", "-p", "-S", f"-{HISTORY_LINES}").rstrip("\n") + "\n"

    def flag(self, name: str) -> bool:
        """A mode of the terminal: `cursor_flag`, `wrap_flag`."""
        return self._call("display-message", "-p", f"#{{{name}}}").strip() == "1"

    def resize(self, columns: int, rows: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(rows))

    def type(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def await_lines(self, is_wanted: Callable[[list[str]], bool], what: str) -> list[str]:
        """The first frame that is wanted."""
        found: list[str] = []

        def look() -> bool:
            found[:] = self.lines()
            return is_wanted(found)

        await_(look, f"{what} on the screen")
        return found

    def await_text(self, text: str) -> list[str]:
        return self.await_lines(lambda lines: text in "\n".join(lines), text)

    def frames_until(self, text: str) -> Iterator[list[str]]:
        """Frames, until one has the text; that one is not among them."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in "\n".join(frame := self.lines()):
            assert time.monotonic() < deadline, frame
            yield frame

    def close(self) -> None:
        self._call("kill-server")

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def open_screen(
    command: list[str], env: dict[str, str], socket: Path, columns: int = 80, rows: int = 24
) -> Iterator[Screen]:
    """tmux names its own TERM to the command."""
    screen = Screen(socket, env)
    screen.open(command, columns, rows)
    try:
        yield screen
    finally:
        screen.close()
