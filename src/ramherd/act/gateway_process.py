"""The MCP gateway as other programs find it, and start it if it does not run.

The gateway writes its address to `mcp/gateway.json` of the runtime directory while it lives. The
supervisor and the hook use this module: standard library only.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ramherd.act.user_manager import unit_dir
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import NoService
from ramherd.core.procid import ProcId
from ramherd.system.files import open_private
from ramherd.system.lock_file import acquire_lock
from ramherd.system.procfs import is_running

ADDRESS = "mcp/gateway.json"
START_LOCK = "mcp/start.lock"
LOG = "mcp/gateway.log"
MOST_LOG_BYTES = 1 << 20
# A first start on a busy machine: the gateway has uvicorn to import.
ANSWERS_WITHIN_S = 30.0
LOOK_EVERY_S = 0.02
WAKE_S = 1.0
# The units of `act/gateway_unit.py`, and the file with the gateway's port in the state directory.
UNIT = "ramherd-mcp"
PORT = "mcp/port"


class GatewayAddress(NamedTuple):
    proc: ProcId
    port: int
    version: str

    def url(self, server: str) -> str:
        return f"http://127.0.0.1:{self.port}/mcp/{server}"


def read_gateway(runtime: Path) -> GatewayAddress | None:
    """None if no gateway runs."""
    try:
        with open(open_private(str(runtime / ADDRESS), os.O_RDONLY), encoding="utf-8") as file:
            read = json.load(file)
        proc = ProcId(int(read["pid"]), int(read["start_ticks"]))
        found = GatewayAddress(proc, int(read["port"]), str(read["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if is_running(proc) else None


def ensure_gateway() -> GatewayAddress:
    """Starts the gateway unless it runs. Callers at the same time start one."""
    runtime = runtime_dir()
    if (found := read_gateway(runtime)) is not None:
        return found
    lock = acquire_lock(str(runtime / START_LOCK))
    assert lock is not None, "it waits for the lock"
    try:
        return read_gateway(runtime) or start_gateway(runtime)
    finally:
        lock.close()


def start_gateway(runtime: Path) -> GatewayAddress:
    log = state_dir() / LOG
    log.parent.mkdir(mode=0o700, exist_ok=True)
    if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
        log.replace(log.with_suffix(".log.old"))
    process = None if wake_unit() else spawn_gateway(log)
    deadline_s = time.monotonic() + ANSWERS_WITHIN_S
    while (found := read_gateway(runtime)) is None:
        if process is not None and process.poll() is not None:
            raise NoService("the MCP gateway did not start", hint=f"tail {log}")
        if time.monotonic() > deadline_s:
            if process is not None:
                process.terminate()
            raise NoService(
                f"the MCP gateway did not answer within {ANSWERS_WITHIN_S:.0f} s",
                hint=f"tail {log}",
            )
        time.sleep(LOOK_EVERY_S)
    return found


def wake_unit() -> bool:
    """systemd listens on the port if the user's own sessions use the gateway: a connection starts
    it (`act/gateway_unit.py`).
    """
    if not (unit_dir() / f"{UNIT}.socket").exists():
        return False
    try:
        port = int((state_dir() / PORT).read_text())
        with socket.create_connection(("127.0.0.1", port), WAKE_S):
            return True
    except (OSError, ValueError):
        return False


def spawn_gateway(log: Path) -> "subprocess.Popen[bytes]":
    fd = open_private(str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ramherd", "mcp", "serve"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=fd, start_new_session=True, cwd="/",
        )  # fmt: skip
    finally:
        os.close(fd)
