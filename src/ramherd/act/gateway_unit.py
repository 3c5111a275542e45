"""The gateway for the user's own sessions: a socket unit of systemd starts it with the first
connection. Without systemd, `ramherd` verbs and the hook start it.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ramherd.act.gateway_process import UNIT
from ramherd.act.user_manager import has_systemd, quote_unit, read_failure, run_command, unit_dir
from ramherd.core.errors import NoService

PASSED = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR")


def install_socket(port: int) -> Path | None:
    """Returns the socket unit; None if there is no systemd that answers to this user."""
    if sys.platform == "darwin" or not has_systemd():
        return None
    folder = unit_dir()
    folder.mkdir(parents=True, exist_ok=True)
    socket = folder / f"{UNIT}.socket"
    socket.write_text(render_socket(port))
    (folder / f"{UNIT}.service").write_text(render_service(os.environ))
    for words in (["daemon-reload"], ["enable", "--now", f"{UNIT}.socket"]):
        if failure := read_failure(run_command("systemctl", "--user", *words)):
            raise NoService(f"the socket of the gateway does not start: {failure}")
    return socket


def uninstall_socket() -> None:
    folder = unit_dir()
    if not (folder / f"{UNIT}.socket").exists():
        return
    run_command("systemctl", "--user", "disable", "--now", f"{UNIT}.socket", f"{UNIT}.service")
    for kind in ("socket", "service"):
        with suppress(FileNotFoundError):
            (folder / f"{UNIT}.{kind}").unlink()
    run_command("systemctl", "--user", "daemon-reload")


def render_socket(port: int) -> str:
    return "\n".join(
        [
            "[Unit]",
            "Description=ramherd: the address of shared MCP servers",
            "",
            "[Socket]",
            f"ListenStream=127.0.0.1:{port}",
            "",
            "[Install]",
            "WantedBy=sockets.target",
            "",
        ]
    )


def render_service(environ: Mapping[str, str]) -> str:
    """PATH is that of `ramherd mcp enable`: servers are found there. Delegate: the gateway sets the
    limits of its servers.
    """
    env = {name: environ[name] for name in ("PATH", *PASSED) if environ.get(name)}
    command = [sys.executable, "-P", "-m", "ramherd", "mcp", "serve"]
    return "\n".join(
        [
            "[Unit]",
            "Description=ramherd: MCP servers that agents share",
            "",
            "[Service]",
            f"ExecStart={' '.join(map(quote_unit, command))}",
            *(f"Environment={quote_unit(f'{name}={value}')}" for name, value in env.items()),
            "Delegate=yes",
            "",
        ]
    )
