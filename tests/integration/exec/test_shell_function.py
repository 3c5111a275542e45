"""`ramherd exec install claude`: typed by hand, the agent runs in a pen; and the undo of it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.conftest import Ramherd, need

CLAUDE = '#!/bin/sh\necho "run: ${RAMHERD_RUN:+pen}"; printf "<%s>" "$@"; exit 7\n'
FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
# How each reads the file of a user who opens a terminal.
FLAGS = {"bash": ["-i", "-c"], "zsh": ["-i", "-c"], "fish": ["-i", "-c"]}


@dataclass
class Home:
    ramherd: Ramherd
    path: Path

    def file(self, shell: str) -> Path:
        return self.path / FILES[shell]

    def type(self, shell: str, line: str) -> "subprocess.CompletedProcess[str]":
        """In a new shell, without a terminal: only its file is of interest."""
        program = need(shell, shell)
        return subprocess.run(
            [program, *FLAGS[shell], line], env=self.ramherd.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture
def home(ramherd: Ramherd, tmp_path: Path) -> Home:
    for name, text in (
        ("claude", CLAUDE),
        ("ramherd", f'#!/bin/sh\nexec {sys.executable} -m ramherd "$@"\n'),
    ):
        program = tmp_path / "home/bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    path = tmp_path / "home"
    ramherd.env |= {
        "HOME": str(path), "PATH": f"{path}/bin:{os.environ['PATH']}", "RAMHERD_PEN": ramherd.pen,
        "XDG_CONFIG_HOME": str(path / ".config"), "TERM": "dumb", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    ramherd.env.pop("ZDOTDIR", None)
    return Home(ramherd, path)


@pytest.mark.parametrize("shell", FILES)
def test_what_is_typed_runs_in_a_pen(home: Home, shell: str) -> None:
    """With its arguments and its exit code. Without ramherd it runs as ever."""
    done = home.ramherd.run("exec", "install", "claude", "--shell", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"source {home.file(shell)}" in done.stdout
    typed = home.type(shell, "claude 'a b' -c ''")

    assert (typed.stdout, typed.returncode) == ("run: pen\n<a b><-c><>", 7), typed.stderr
    (home.path / "bin/ramherd").unlink()
    assert home.type(shell, "claude 'a b'").stdout == "run: \n<a b>"


@pytest.mark.parametrize("before", [None, b"", b"export A=1", b"a\r\nb\n\n", b"\xff\n"])
def test_the_undo_restores_every_byte(home: Home, before: bytes | None) -> None:
    """Also of a file that was not there. Installing twice changes nothing."""
    path = home.file("fish")
    if before is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(before)
        path.chmod(0o600)
    told = [
        json.loads(home.ramherd.run("exec", verb, "claude", "--shell", "fish", "--json").stdout)
        for verb in ("install", "install", "uninstall", "uninstall")
    ]

    assert [one["changed"] for one in told] == [True, False, True, False]
    assert (path.read_bytes() if path.exists() else None) == before
    assert before is None or path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == (
        [path.name] if before is not None else []
    )


def test_lines_of_the_user_stay(home: Home) -> None:
    """Written after the installation, and in the file that a link leads to."""
    (home.path / "dotfiles").mkdir()
    real = home.path / "dotfiles/bashrc"
    real.write_text("export A=1\n")
    home.file("bash").symlink_to(real)
    home.ramherd.env["SHELL"] = "/bin/bash"
    for agent in ("claude", "codex"):
        assert home.ramherd.run("exec", "install", agent).returncode == 0
    with real.open("a") as file:
        file.write("export B=2\n")
    for agent in ("claude", "codex"):
        assert home.ramherd.run("exec", "uninstall", agent).returncode == 0

    assert home.file("bash").is_symlink()
    assert real.read_text() == "export A=1\nexport B=2\n"


def test_an_alias_that_hides_the_function_is_named(home: Home) -> None:
    """A shell takes it first."""
    home.file("bash").write_text("alias claude=/opt/claude\n")
    done = home.ramherd.run("exec", "install", "claude", "--shell", "bash")

    assert (done.returncode, "unalias claude" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["claude"], "ramherd exec -- claude"),
        (["claude", "--resume", "x"], "ramherd exec -- claude --resume x"),
        (["install"], "ramherd exec install claude"),
        (["install", "vim"], "ramherd exec install claude"),
        (["uninstall", "claude", "codex"], "ramherd exec uninstall claude"),
        (["--json", "--", "true"], "ramherd exec -- claude"),
    ],
)
def test_a_wrong_call_changes_nothing(home: Home, words: list[str], hint: str) -> None:
    """The hint can be typed."""
    done = home.ramherd.run("exec", *words)

    assert done.returncode == 2
    assert f"hint: {hint}\n" in done.stderr
    assert not home.file("bash").exists()


def test_an_unknown_shell_is_asked_for(home: Home) -> None:
    """The login shell may be any."""
    home.ramherd.env["SHELL"] = "/bin/tcsh"
    done = home.ramherd.run("exec", "install", "claude")

    assert done.returncode == 2
    assert "the shell tcsh is not known" in done.stderr
