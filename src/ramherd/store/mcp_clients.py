"""The clients of the MCP gateway: one file for each token, named by the token's SHA-256.

The program that starts a run or a session registers it, and drops it at its end: the gateway then
ends the sessions of that token. A file never holds the token itself. The supervisor and the hook
use this module: standard library only.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ramherd.system.files import open_private, write_json

CLIENTS = "mcp/clients"


class McpClient(NamedTuple):
    """A client may use these servers and no others. `run` is None for a session of the user."""

    servers: tuple[str, ...]
    run: str | None
    cwd: str
    agent: str
    made_at_s: float


def register_client(
    base: Path, *, servers: Sequence[str], run: str | None, cwd: str, agent: str
) -> str:
    """Returns the token. `base` is the runtime directory for a run or a session, and the state
    directory for a token that is to survive a reboot.
    """
    token = secrets.token_urlsafe(32)
    folder = base / CLIENTS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    client = McpClient(tuple(servers), run, cwd, agent, time.time())
    write_json(str(folder / f"{hash_token(token)}.json"), client._asdict())
    return token


def drop_client(base: Path, token: str) -> None:
    (base / CLIENTS / f"{hash_token(token)}.json").unlink(missing_ok=True)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def read_client(bases: Sequence[Path], token_hash: str) -> McpClient | None:
    """None for a token that nobody registered, or that was dropped."""
    for base in bases:
        try:
            fd = open_private(str(base / CLIENTS / f"{token_hash}.json"), os.O_RDONLY)
            with open(fd, encoding="utf-8") as file:
                read = json.load(file)
            return McpClient(
                tuple(read["servers"]), read["run"], read["cwd"], read["agent"], read["made_at_s"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
