"""A client of stdio servers: starts them as its argument says, prints `ready`, and waits.

    client.py '[{"argv": [...], "stdio": "pipe" | "socket", "session": true, "asks": true}]'

`stdin: null` and `stdout: PATH` replace one side, `closes` closes its stdin, `{pid}` in a value of
`env` is the client's. Killed, it leaves its servers as an agent does that was killed.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "zoo", "version": "1"}},
}  # fmt: skip


def main() -> None:
    kept = [start(spec) for spec in json.loads(sys.argv[1])]
    for spec, (_process, write, read) in zip(json.loads(sys.argv[1]), kept, strict=True):
        if spec.get("asks"):
            os.write(write, json.dumps(INITIALIZE).encode() + b"\n")
            await_line(read)
        if spec.get("closes"):
            os.close(write)
    print("ready", flush=True)
    signal.pause()


def start(spec: dict[str, Any]) -> tuple["subprocess.Popen[bytes]", int, int]:
    """(process, where to write to it, where to read from it)."""
    if spec.get("stdio") == "socket":
        (ours_in, its_in), (ours_out, its_out) = socket.socketpair(), socket.socketpair()
        process = popen(spec, its_in.fileno(), its_out.fileno())
        its_in.close()
        its_out.close()
        return process, ours_in.detach(), ours_out.detach()
    its_in_fd, write = os.pipe()
    read, its_out_fd = os.pipe()
    process = popen(spec, its_in_fd, its_out_fd)
    os.close(its_in_fd)
    os.close(its_out_fd)
    return process, write, read


def popen(spec: dict[str, Any], stdin: int, stdout: int) -> "subprocess.Popen[bytes]":
    if "stdout" in spec:
        stdout = os.open(spec["stdout"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    window = socket.socket(socket.AF_UNIX)
    if "display" in spec:
        window.connect(spec["display"])
    own = {key: value.replace("{pid}", str(os.getpid())) for key, value in spec["env"].items()}
    return subprocess.Popen(
        spec["argv"],
        stdin=subprocess.DEVNULL if "stdin" in spec else stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **own},
        start_new_session=spec.get("session", False),
        cwd=spec.get("cwd"),
        pass_fds=[window.fileno()] if "display" in spec else (),
    )


def await_line(fd: int) -> None:
    """Its reply: the server is up."""
    seen = b""
    while not seen.endswith(b"\n"):
        byte = os.read(fd, 65536)
        if not byte:
            sys.exit("a server ended before it answered")
        seen += byte


if __name__ == "__main__":
    main()
