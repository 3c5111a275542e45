"""Access of the processes of runs to the MCP gateway: a token for each process, and the files of
their CLIs that name its servers.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.store.mcp_clients import CLIENTS, drop_client, register_client
from ramherd.system.files import open_private

if TYPE_CHECKING:
    from ramherd.act.run import LiveRun
    from ramherd.agents import ConfigFile

CONFIGS = "mcp/configs"


def grant_servers(runtime: Path, run: "LiveRun") -> str:
    """Returns the token of a new process; "" if its files only turn off its own servers."""
    assert run.agent_run is not None
    launch = run.agent_run.launch
    write_files(launch.files)
    if not launch.servers:
        return ""
    return register_client(
        runtime, servers=launch.servers, run=run.id, cwd=run.agent_run.cwd,
        agent=run.agent_run.agent.name,
    )  # fmt: skip


def revoke_servers(runtime: Path, run: str, token: str) -> None:
    """`token` is "" if another supervisor started the run."""
    if token:
        drop_client(runtime, token)
    else:
        drop_clients_of(runtime, run)


def drop_clients_of(runtime: Path, run: str) -> None:
    """Finds the client by its run: a file does not have the token."""
    for path in (runtime / CLIENTS).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(path.read_bytes())["run"] == run:
                path.unlink()


def write_files(files: "Iterable[ConfigFile]") -> None:
    """Each file with mode 0600, written whole, in directories of the user alone."""
    for file in files:
        path = Path(file.path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if file.links_to:
            link_all(Path(file.links_to), path)
        else:
            replace_file(path, file.text)


def replace_file(path: Path, text: str) -> None:
    fresh = f"{path}.{os.getpid()}"
    with open(open_private(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
        file.write(text)
    os.replace(fresh, path)


def link_all(source: Path, folder: Path) -> None:
    """Links each file of `source` in `folder`, except for plain files that `folder` has: those are
    ours. Directories of sessions exist before the CLI makes them, or they would be lost.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in SESSION_DIRS:
        (source / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    ours = {entry.name for entry in os.scandir(folder)}
    for entry in os.scandir(source):
        if entry.name not in ours:
            with suppress(FileExistsError):
                (folder / entry.name).symlink_to(entry.path)


# Of gemini, whose home directory is the only one that is linked.
SESSION_DIRS = ("tmp", "history")
