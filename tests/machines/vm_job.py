#!/usr/bin/env python3
"""The service that runs one command in the machine of vm.py. Standard library only."""

import json
import os
import select
import subprocess
from typing import Any

PLAN = "/run/job/plan"
USER = "herd"
PORTS = "/sys/class/virtio-ports"


def open_port(name: str) -> int:
    for entry in os.listdir(PORTS):
        with open(f"{PORTS}/{entry}/name") as file:
            if file.read().strip() == name:
                return os.open(f"/dev/{entry}", os.O_WRONLY)
    raise LookupError(f"no port {name}")


def command_line(plan: dict[str, Any]) -> list[str]:
    """As after a login, with the exit code coming back."""
    return [
        "systemd-run", "--quiet", "--collect", "--pipe", "--wait", f"--uid={USER}",
        "--property=PAMName=login", f"--working-directory={plan['cwd']}",
        *(f"--setenv={name}={value}" for name, value in plan["env"].items()), "--",
        # systemd-run would put in variables.
        *(word.replace("$", "$$") for word in plan["command"]),
    ]  # fmt: skip


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def run(command: list[str], out: int, err: int) -> int:
    """Through pipes: a command's stdout must be nothing that only root can open again."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    streams = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    ended = os.pidfd_open(process.pid)
    while streams:
        # What it left running may hold the pipes for ever: when it is gone, take what is there.
        gone = process.poll() is not None
        fds = [*streams] if gone else [*streams, ended]
        ready = select.select(fds, [], [], 0 if gone else None)[0]
        if gone and not ready:
            break
        for fd in ready:
            if fd != ended:
                data = os.read(fd, 1 << 16)
                write_all(streams[fd], data)
                if not data:
                    del streams[fd]
    code = process.wait()
    return code if code >= 0 else 128 - code


def main() -> None:
    with open(PLAN) as file:
        plan = json.load(file)
    status = open_port("status")
    code = run(command_line(plan), open_port("out"), open_port("err"))
    os.write(status, str(code).encode())


if __name__ == "__main__":
    main()
