"""Tab in real shells: verbs, options and jobs are completed, and the line that results works."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Ramherd, need
from support.terminals import Terminal, open_terminal

# How each is started without the files of the user, and its first line.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(ramherd completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -Uz compinit; compinit -D; eval "$(ramherd completion zsh)"'),
    "fish": (["--no-config", "-i"], "ramherd completion fish | source"),
}


@pytest.fixture
def with_jobs(ramherd: Ramherd, tmp_path: Path) -> Ramherd:
    """`ramherd` is in PATH, and has run two jobs."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/ramherd"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ramherd "$@"\n')
    program.chmod(0o755)
    ramherd.env |= {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    jobs = [
        {"name": name, "command": ["echo", f"output of {word}"]}
        for name, word in (("fix-lint", "the first"), ("a b's", "the second"))
    ]
    assert ramherd.json(jobs)["done"] == 2
    return ramherd


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, with_jobs: Ramherd) -> Iterator[Terminal]:
    """An interactive shell that knows how to complete ramherd."""
    program = need(request.param, request.param)
    flags, setup = SHELLS[request.param]
    terminal = open_terminal([program, *flags], with_jobs.env)
    terminal.resize(50, 120)
    terminal.type(f"{setup}; echo re''ady\n")
    terminal.expect("ready")
    yield terminal
    terminal.type("\x03\nexit\n")
    terminal.wait()
    terminal.close()


def test_tab_completes_a_verb_and_a_job(shell: Terminal) -> None:
    """`ramherd log`, Tab, `fix`, Tab, Return prints what the job printed."""
    shell.type("ramherd log\tfix\t\n")

    assert "ramherd" in shell.expect("output of the first")


def test_a_name_with_spaces_is_quoted(shell: Terminal) -> None:
    """The line is what a user would have typed."""
    shell.type("ramherd logs a\t\n")

    shell.expect("output of the second")


def test_tab_completes_an_option_and_its_value(shell: Terminal) -> None:
    """`ramherd config --age`, Tab, `cod`, Tab is `--agent codex`."""
    shell.type("ramherd config --age\tcod\t | grep codex\n")

    shell.expect("--agent\r\n")


def test_the_scripts_are_right_for_their_shells(with_jobs: Ramherd) -> None:
    """They parse; fish lists descriptions with the words."""
    for name in SHELLS:
        program = need(name, name)
        script = with_jobs.run("completion", name).stdout
        checked = subprocess.run(
            [program, "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, ""), name
    fish = need("fish", "fish")
    code = "ramherd completion fish | source; complete -C 'ramherd show '"
    listed = subprocess.run(
        [fish, "--no-config", "-c", code], env=with_jobs.env, capture_output=True, text=True,
        check=False,
    ).stdout.splitlines()  # fmt: skip
    assert "1\tfix-lint, done" in listed
    assert "fix-lint\tjob 1, done" in listed


def test_another_shell_is_an_error(ramherd: Ramherd) -> None:
    """With those that there are."""
    refused = ramherd.run("completion", "tcsh")

    assert refused.returncode == 2
    assert "bash" in refused.stderr
