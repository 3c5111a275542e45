"""docs/screens.md: what a user sees of `run`, `drill`, `jobs` and `status`, captured in tmux.

`make screens` writes the file; a test captures the same screens again and compares them, without
the numbers that differ from one machine and one second to the next.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import DEVNULL

from integration.conftest import await_, make_ramherd, ours
from ramherd.system.unix_socket import is_listening
from support.screens import Screen, open_screen

DOCS = Path(__file__).parents[2] / "docs/screens.md"
SIZES = ((80, 24), (120, 40))

# Two at a time; the ones that run wait for a file.
JOBS = """\
[[job]]
name = "docs"
command = "echo 'no rule to make docs' >&2; exit 2"

[[job]]
name = "build"
command = "until [ -e go ]; do sleep 0.05; done; echo built"

[[job]]
name = "lint"
command = "until [ -e go ]; do sleep 0.05; done; echo 'no errors'"

[[job]]
name = "test"
after = ["build"]
command = "echo '128 passed'"

[[job]]
name = "fuzz"
command = "echo 'no crash'"
"""
RAMHERD = [sys.executable, "-m", "ramherd"]
RUN = "ramherd run jobs.toml --max-parallel 2"
VERBS = ("jobs", "status")
DRILL = "ramherd drill --agents 20 --budget 700MiB"

INTRO = """\
# Screens

What ramherd shows in windows of 80 x 24 and 120 x 40, without its colours and without the empty
lines at the end. `make screens` captures this page from the programs themselves, and a test
compares it with them.
"""

# The memory of a run in `ramherd jobs`.
MEASURED = re.compile(r"running +[1-9]\d*[KM]/\d+M")
# What differs from one capture to the next, in the order of replacement.
NORMAL = (
    (r"(?m)^ramherd: limits are polled.*\n", ""),
    (r"(?m)^\$ ramherd drill.*\n", ""),
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "ID"),
    (r"\bherd [0-9A-Z]{6}\b", "herd ID"),
    (r"up for .*\(pid \d+, pen \w+\)", "up for TIME (pid PID, pen KIND)"),
    (r"\[[#.]+\]", "[BAR]"),
    # The rows of a drill, and why the next one waits.
    (r"(?m)^(.*agent-\d+.*\n)+", "AGENTS\n"),
    (r"(?m)^ +and \d+ more\n", ""),
    (r"(?m)^next waits: .*agent.*\n|^AGENTS\nnext waits: .*\n", "AGENTS\n"),
    (r"\d+/20  \d+ running  \d+ queued", "N/20"),
    (r"  (level \w+|\d+ held)", ""),
    (r"(\d+(\.\d+)?)? ?\b(B|[KMG]iB)\b", "SIZE"),
    (r"\b[\d.]+[KMG]/[\d.]+[KMG]\b", "SIZE"),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b", "TIME"),
    (r"  about TIME left", ""),
    (r" +", " "),
)


def normal(screen: str) -> str:
    """Jobs that end at the same time print in any order."""
    lines = screen.split("\n")
    printed = sorted(line for line in lines if " | " in line)
    screen = "".join(f"{printed.pop(0) if ' | ' in line else line}\n" for line in lines)
    for pattern, word in NORMAL:
        screen = re.sub(pattern, word, screen)
    return screen


def capture() -> dict[str, str]:
    """The screens by their titles."""
    found: dict[str, str] = {}
    for columns, rows in SIZES:
        with tempfile.TemporaryDirectory(prefix="ramherd-screens-") as name:
            alone, service = (Stage(Path(name, part), columns, rows) for part in ("run", "up"))
            for title, screen in (*alone.capture_run(), *service.capture_service()):
                found[f"{title}, {columns} x {rows}"] = screen
    return found


class Stage:
    """A directory with a file of jobs, a store of its own, and windows of one size."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self.folder, self.columns, self.rows = folder, columns, rows
        self.opened = 0
        self.env = make_ramherd(folder, "auto").env
        self.env["PATH"] = f"{Path(sys.executable).parent}:{self.env['PATH']}"
        for name in ("TERM", "NO_COLOR", "COLUMNS"):
            self.env.pop(name, None)
        folder.mkdir()
        (folder / "jobs.toml").write_text(JOBS)

    def open(self, command: str) -> AbstractContextManager[Screen]:
        shown = shlex.quote(f"$ {command}")
        typed = f"trap : INT; cd {shlex.quote(str(self.folder))}; echo {shown}; {command}"
        self.opened += 1
        socket = self.folder / f"tmux-{self.opened}"
        return open_screen(["sh", "-c", typed], self.env, socket, self.columns, self.rows)

    def capture_run(self) -> Iterator[tuple[str, str]]:
        with self.open(RUN) as screen:
            running = screen.await_lines(is_run_steady, "two jobs that run, and two that do not")
            yield "`ramherd run`", "\n".join(running)
            (self.folder / "go").touch()
            yield "`ramherd run` at its end", without_status(screen.await_text("exit status 1"))
        (self.folder / "go").unlink()
        with self.open(DRILL) as screen:
            working = screen.await_lines(is_drill_at_work, "agents at work")
            yield "`ramherd drill`", "\n".join(working)
            screen.type("C-c")
            screen.type("C-c")
            screen.await_text("exit status 130")
        await_(lambda: not ours("RAMHERD_RUN"), "all runs have ended")

    def capture_service(self) -> Iterator[tuple[str, str]]:
        """The herd of `run`, submitted to a service."""
        up = [*RAMHERD, "up", "--max-parallel", "2"]
        service = subprocess.Popen(up, env=self.env, stdout=DEVNULL, stderr=DEVNULL)
        try:
            socket = self.folder / "runtime/api.sock"
            await_(lambda: is_listening(socket), "the service")
            herd = self.call("submit", "jobs.toml").strip()
            await_(lambda: len(MEASURED.findall(self.call("jobs"))) == 2, "memory of both runs")
            for verb in VERBS:
                with self.open(f"ramherd {verb}") as screen:
                    shown = screen.await_text("exit status 0")
                yield f"`ramherd {verb}`", without_status(shown)
            (self.folder / "go").touch()
            await_(lambda: herd not in self.call("jobs", "--json"), "the end of the herd")
        finally:
            service.terminate()
            service.wait()

    def call(self, *words: str) -> str:
        command = [*RAMHERD, *words]
        done = subprocess.run(
            command, env=self.env, cwd=self.folder, text=True, stdout=subprocess.PIPE, check=True
        )
        return done.stdout


def is_run_steady(lines: list[str]) -> bool:
    """`docs` has failed, and the memory of the others was measured."""
    text = "\n".join(lines)
    return "1/5  2 running" in text and "next waits" in text and " 0 B " not in text


def is_drill_at_work(lines: list[str]) -> bool:
    rows = sum("agent-" in line for line in lines)
    return rows >= 8 and not any(line.startswith("      0 B ") for line in lines)


def without_status(lines: list[str]) -> str:
    return "\n".join(line for line in lines if not line.startswith("exit status "))


def render(screens: dict[str, str]) -> str:
    blocks = (f"## {title}\n\n```\n{screen}\n```\n" for title, screen in screens.items())
    return "\n".join([INTRO, *blocks])


def parse(text: str) -> dict[str, str]:
    """The screens of the page."""
    found = re.findall(r"^## ([^\n]*)\n\n```\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
    return dict(found)


if __name__ == "__main__":
    DOCS.write_text(render(capture()))
    sys.stdout.write(f"{os.path.relpath(DOCS)}\n")
