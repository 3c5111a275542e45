"""The doctor on a fresh Debian: every command that it prints, and fixes that leave nothing. Run in
the machine of machines/vm.py only: its name is none that pytest looks for.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.doctor_commands import find_all, find_reason

RAMHERD = f"PYTHONPATH={os.environ['PYTHONPATH']} {sys.executable} -m ramherd"
FIVE = """\
export BUN_OPTIONS=--smol
export BUN_JSC_gcMaxHeapSize=1000
export BUN_JSC_maxHeap=1000
export UV_THREADPOOL_SIZE=4
export NODE_MAX_CONCURRENT_REQUESTS=5
"""
# No agent is installed, QEMU has no time server, and its clock is what it is.
LEFT = {"cli", "clock", "clock-source"}
COMMAND_S = 60


def run(command: str, cwd: Path | None = None, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", command], cwd=cwd, env={**os.environ, **env}, text=True,
        capture_output=True, check=False, timeout=COMMAND_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def doctor(before: str = "", *, sudo: str = "") -> dict[str, Any]:
    done = run(f"{before}\n{sudo} {RAMHERD} doctor --json")
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def not_ok(found: dict[str, Any]) -> dict[str, Any]:
    return {one["check"]: one for one in found["findings"] if one["level"] != "ok"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Path]:
    """A directory of the user with jobs.toml, an agent, and an editor that opens a file."""
    programs = tmp_path / "programs"
    programs.mkdir()
    script(programs / "claude", "exit 0")
    script(programs / "ramherd", f'exec env {RAMHERD} "$@"')
    script(programs / "editor", 'for last; do :; done; test -f "$last"')
    (tmp_path / "jobs.toml").write_text('[[job]]\ncommand = "true"\n')
    for unit in ("nohang", "agent"):
        text = "[Service]\nExecStart=/bin/sleep 1000\n"
        run(f"printf '{text}' | sudo tee /etc/systemd/system/{unit}.service")
    run("sudo systemctl daemon-reload && sudo systemctl start nohang")
    yield tmp_path
    run("sudo systemctl stop nohang")


def test_fix_look_again_none_left() -> None:
    """Files of the user, and in the shell that had read them; a swap file, kernel values and their
    files as root, also after the next boot.
    """
    home = Path.home()
    (home / ".bashrc").write_text(FIVE)
    state = home / ".local/state/ramherd"
    state.mkdir(parents=True)
    state.chmod(0o755)
    spoil = (
        "sudo sysctl -w vm.oom_kill_allocating_task=1 fs.inotify.max_user_instances=64",
        "printf 'vm.overcommit_memory = 2\nvm.oom_kill_allocating_task = 1000\n'"
        " | sudo tee /etc/sysctl.d/50-agents.conf",
        "sudo fallocate -l 16M /swapfile && sudo chmod 644 /swapfile",
        "sudo mkswap /swapfile && sudo swapon /swapfile",
    )
    for command in spoil:
        assert run(command).returncode == 0
    first = not_ok(doctor(FIVE))
    for sudo in ("", "sudo"):
        done = run(f"{FIVE}{sudo} {RAMHERD} doctor --fix --yes")
        assert "not done" not in done.stderr
    user, root = doctor(FIVE), doctor(sudo="sudo")
    assert run("sudo sysctl --system").returncode == 0
    booted = doctor(sudo="sudo")
    run("sudo swapoff /swapfile && sudo rm /swapfile")

    assert set(first) >= {
        "bun-options", "threadpool", "invented", "state", "swap-file", "oom-task",
        "inotify-instances", "sysctl-overcommit", "sysctl-oom-task",
    }  # fmt: skip
    for found in (user, root, booted):
        assert [one for one in found["findings"] if one["fix"]] == []
        assert set(not_ok(found)) <= {*LEFT, "zram", "open-files", "processes"}


def test_the_printed_commands_leave_nothing_to_say() -> None:
    """On this machine as it is: the doctor, its commands in one shell, the doctor again."""
    first = not_ok(doctor())
    commands = [one["command"] for check, one in first.items() if check not in LEFT]
    assert "modprobe zram" in first["swap"]["command"]

    left = not_ok(doctor("\n".join(f"{{ {command}\n}} >&2" for command in commands)))

    print(json.dumps(first, indent=1))
    assert set(left) <= LEFT


def test_every_command_works_here(desk: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of every finding that can be made up, in the directory of a user."""
    programs = desk / "programs"
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "EDITOR": f"{programs}/editor"}
    env["RAMHERD_MEMORY"] = "64MiB"  # what agents need otherwise is more than QEMU has
    found = {one.command: one for one in find_all(tmp_path_factory.mktemp("machines"))}
    failed = []
    ran = 0
    for command in filter(None, found):
        if find_reason(command):
            continue
        ran += 1
        # The sizes are those of the made-up machine.
        here = re.sub(r"--budget \d+GiB", "--budget 512MiB", command)
        as_root = command.startswith(("mount ", "systemd-run --scope"))
        done = run(f"sudo env PATH=$PATH {here}" if as_root else here, desk, **env)
        # pgrep finds nothing.
        if done.returncode not in ((0, 1) if command.startswith("pgrep") else (0,)):
            failed.append((found[command].check, here, done.returncode, done.stderr))

    print(f"{ran} commands")
    assert failed == []
    assert ran > 60
