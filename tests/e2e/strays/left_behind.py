"""Two sessions of one real agent, each with three MCP servers and a tool call under way. The first
is killed, `ramherd reap` is called, and what is left is listed. Runs as process 1 of a namespace:

    python left_behind.py AGENT outer|all DIR
"""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from e2e.agent_home import INSTALLED, Home, make_home
from e2e.zoo.namespace import call
from e2e.zoo.place import HERE, TOOLS
from e2e.zoo.species import await_
from llm import LLM
from ramherd.system.procfs import read_processes

# claude refuses to sleep.
SCRIPT = [{"shell": "tail -f /dev/null"}, {"say": "never"}]
PROMPT = "do it [script hang]"
SERVERS = TOOLS / "node_modules/@modelcontextprotocol"
STAY = str(HERE / "stay.mjs")
ARGV = {
    "claude": ("-p", PROMPT, "--dangerously-skip-permissions"),
    "codex": (
        "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT,
    ),
    "gemini": ("-p", PROMPT, "--yolo"),
    "opencode": ("run", PROMPT),
}  # fmt: skip


def servers() -> dict[str, list[str]]:
    """Two that end with their stdin, and one that does not."""
    everything, memory = (
        str(SERVERS / f"server-{name}/dist/index.js") for name in ("everything", "memory")
    )
    return {
        "one": ["node", everything],
        "two": ["node", memory],
        "three": ["node", "--import", STAY, memory],
    }


def configure(home: Home, directory: Path) -> tuple[str, ...]:
    """The servers in the agent's own settings; what it has to be told beside."""
    by_name = {name: {"command": argv[0], "args": argv[1:]} for name, argv in servers().items()}
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
                name: {"type": "local", "command": argv, "enabled": True}
                for name, argv in servers().items()
            }
            change(directory / ".config/opencode/opencode.json", {"mcp": local})
    return ()


def codex_table(server: tuple[str, dict[str, Any]]) -> str:
    """JSON of texts and lists is TOML too."""
    name, keys = server
    return "\n".join(
        [f"[mcp_servers.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in keys.items())]
    )


def change(path: Path, more: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def start(name: str, directory: Path, url: str) -> "subprocess.Popen[bytes]":
    directory.mkdir()
    home = make_home(name, directory, url)
    more = configure(home, directory / f"home-{name}")
    with (directory / "out").open("wb") as out:
        return subprocess.Popen(
            [INSTALLED / name, *ARGV[name], *more], env=home.env, cwd=home.cwd,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


def family(root: int) -> dict[int, str]:
    """It and all below it, with their names."""
    procs = {proc.id.pid: proc for proc in read_processes() if proc.is_alive}
    found = {root: procs[root].name} if root in procs else {}
    while more := {p: q.name for p, q in procs.items() if q.ppid in found and p not in found}:
        found |= more
    return found


def is_ready(root: int) -> dict[int, str] | None:
    """The tool is at work, and so are the three servers."""
    found = family(root)
    running = [pid for pid in found if str(SERVERS) in read_command(pid)]
    return found if "tail" in found.values() and len(running) >= 3 else None


def read_command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def own_of(name: str, members: dict[int, str]) -> list[int]:
    """The agent's own processes: wrapper and agent proper."""
    words = {pid: read_command(pid).split("\0") for pid in members}
    return [pid for pid in members if any(word.endswith(f"/{name}") for word in words[pid])]


def main() -> None:
    name, mode, root = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with LLM({"hang": SCRIPT}) as llm:
        started = [start(name, root / which, llm.url) for which in ("killed", "live")]
        killed, live = (
            await_(partial(is_ready, process.pid), f"{name} at work") for process in started
        )
        victims = own_of(name, killed) if mode == "all" else [started[0].pid]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        started[0].wait()
        left = set(killed) & alive()
        told = call("reap", "--stray-grace", "0", "--yes")
        now = alive()
        figures = {
            "killed": len(victims), "left": sorted(killed[pid] for pid in left),
            "survivors": sorted(killed[pid] for pid in set(killed) & now),
            "touched": sorted(live[pid] for pid in set(live) - now), "live": len(live),
            "evidence": sorted({row["evidence"][0]["fact"] for row in told["ended"]}),
        }  # fmt: skip
        print(json.dumps(figures), flush=True)


def alive() -> set[int]:
    return {proc.id.pid for proc in read_processes() if proc.is_alive}


if __name__ == "__main__":
    main()
