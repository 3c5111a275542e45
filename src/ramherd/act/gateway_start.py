"""Starts the MCP gateway without waiting for it: in the loop, in the hook, and with any verb."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ramherd.act.gateway_process import read_gateway
from ramherd.store.mcp_clients import CLIENTS

COMMAND = (sys.executable, "-P", "-m", "ramherd", "mcp", "start", "--quiet")


def start_in_background() -> None:
    """The shell returns at once, and leaves no child of ours."""
    with suppress(OSError):
        subprocess.run(
            ["/bin/sh", "-c", '"$@" < /dev/null > /dev/null 2>&1 &', "sh", *COMMAND],
            check=False, start_new_session=True,
        )  # fmt: skip


def start_if_enabled(state: Path, runtime: Path) -> None:
    """For the user's own sessions, whose settings name the gateway (`ramherd mcp enable`)."""
    if is_enabled(state) and read_gateway(runtime) is None:
        start_in_background()


def is_enabled(state: Path) -> bool:
    """Tokens in the state directory are those of the user's own sessions."""
    try:
        with os.scandir(state / CLIENTS) as found:
            return any(found)
    except OSError:
        return False
