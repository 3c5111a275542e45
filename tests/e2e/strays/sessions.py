"""Real agents in sessions of their own, each with MCP servers and a tool call under way."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.agent_home import INSTALLED, Home, make_home
from e2e.zoo.place import HERE, TOOLS
from ramherd.system.procfs import read_processes

SERVERS = TOOLS / "node_modules/@modelcontextprotocol"
STAY = str(HERE / "stay.mjs")
OPTIONS = {
    "claude": ("--dangerously-skip-permissions",),
    "codex": ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "gemini": ("--yolo",),
    "opencode": (),
}
PROMPTED = {
    "claude": ("-p",), "codex": ("exec",), "gemini": ("-p",), "opencode": ("run",),
}  # fmt: skip
# A server that a user wrote, of the kind that does not end with its stdin.
OWN_SERVER = '''\
"""The weather, for agents."""
import json, sys, time

def answer(call):
    if call["method"] == "initialize":
        version = call["params"]["protocolVersion"]
        about = {"name": "weather", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    return {"tools": []} if call["method"] == "tools/list" else {}

for line in sys.stdin:
    call = json.loads(line)
    if "id" in call:
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": answer(call)}), flush=True)
while True:
    time.sleep(1000)
'''


@dataclass(frozen=True)
class Server:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)


def node_server(name: str, *options: str) -> Server:
    return Server(["node", *options, str(SERVERS / f"server-{name}/dist/index.js")])


def three_servers() -> dict[str, Server]:
    """Two that end with their stdin, and one that does not."""
    return {
        "one": node_server("everything"),
        "two": node_server("memory"),
        "three": node_server("memory", "--import", STAY),
    }


def own_server(directory: Path) -> Server:
    path = directory / "weather-tools/server.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OWN_SERVER)
    return Server([sys.executable, "-S", str(path)])


def configure(home: Home, directory: Path, servers: dict[str, Server]) -> tuple[str, ...]:
    """The servers in the agent's own settings; what it has to be told beside."""
    by_name = {
        name: {"command": one.argv[0], "args": one.argv[1:], "env": one.env}
        for name, one in servers.items()
    }
    match home.agent.name:
        case "claude":
            return ("--mcp-config", json.dumps({"mcpServers": by_name}), "--strict-mcp-config")
        case "codex":
            path = directory / ".codex/config.toml"
            path.write_text("\n".join([path.read_text(), *map(codex_table, by_name.items())]))
        case "gemini":
            change(directory / ".gemini/settings.json", {"mcpServers": by_name})
        case "opencode":
            local = {
                name: {
                    "type": "local", "command": one.argv, "enabled": True, "environment": one.env,
                }
                for name, one in servers.items()
            }  # fmt: skip
            change(directory / ".config/opencode/opencode.json", {"mcp": local})
    return ()


def codex_table(server: tuple[str, dict[str, Any]]) -> str:
    """JSON of texts and lists is TOML too."""
    name, keys = server
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if key != "env"]
    env = [f"{key} = {json.dumps(value)}" for key, value in keys["env"].items()]
    return "\n".join([f"[mcp_servers.{name}]", *lines, f"[mcp_servers.{name}.env]", *env])


def change(path: Path, more: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def start(
    name: str, directory: Path, url: str, prompt: str, servers: dict[str, Server], **env: str
) -> "subprocess.Popen[bytes]":
    directory.mkdir()
    home = make_home(name, directory, url)
    more = configure(home, directory / f"home-{name}", servers)
    argv = [str(INSTALLED / name), *PROMPTED[name], prompt, *OPTIONS[name], *more]
    if name == "codex":
        argv = [str(INSTALLED / name), "exec", *OPTIONS[name], prompt]
    with (directory / "out").open("wb") as out:
        return subprocess.Popen(
            argv, env={**home.env, **env}, cwd=home.cwd, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


def family(root: int) -> dict[int, str]:
    """It and all below it, with their names."""
    procs = {proc.id.pid: proc for proc in read_processes() if proc.is_alive}
    found = {root: procs[root].name} if root in procs else {}
    while more := {p: q.name for p, q in procs.items() if q.ppid in found and p not in found}:
        found |= more
    return found


def read_command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def own_of(name: str, members: dict[int, str]) -> list[int]:
    """The agent's own processes: wrapper and agent proper."""
    words = {pid: read_command(pid).split("\0") for pid in members}
    return [pid for pid in members if any(word.endswith(f"/{name}") for word in words[pid])]


def alive() -> set[int]:
    return {proc.id.pid for proc in read_processes() if proc.is_alive}
