"""Real claudes with five MCP servers: a private copy of each server, or all of them shared.

    cd tests && ../.venv/bin/python -m bench.mcp_claudes [--claudes 20] [--write FILE]

Two runs of `ramherd run`, one after the other. Each claude calls a tool and then waits for the
model; meanwhile the memory (PSS) of all processes is added up: agents, servers, and the gateway.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tables import publish
from e2e.agent_home import Home, make_home
from llm import LLM
from ramherd.store.mcp_servers import McpServer, write_registry
from ramherd.system.procfs import read_processes, read_pss_bytes, read_variable
from support.mcp.tools import REAL_SERVERS

# The gateway does not pass RAMHERD_* variables on.
TAG = "BENCH_OF_SHARED_SERVERS"
CALL = {"name": "mcp__everything__echo", "args": {"message": "hello"}}
SCRIPT: list[dict[str, Any]] = [{"call": [CALL]}, {"say": "Done.", "gate": "go"}]
WAIT_S, SETTLE_S = 300.0, 5.0
MOST_SHARE = 0.5


@dataclass
class Measured:
    name: str
    processes: int
    pss_bytes: int

    def row(self) -> str:
        return f"| {self.name} | {self.processes} | {self.pss_bytes / 1e6:.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--claudes", type=int, default=20)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    private = measure(options.claudes, is_shared=False)
    print(private, flush=True)
    shared = measure(options.claudes, is_shared=True)
    share = shared.pss_bytes / private.pss_bytes
    lines = [
        f"| {options.claudes} claudes, {len(REAL_SERVERS)} servers | processes | PSS MB |",
        "|---|---|---|", private.row(), shared.row(),
    ]  # fmt: skip
    publish(lines, "bench-mcp-claudes", options.write)
    print(f"shared / private: {share:.0%}, at most {MOST_SHARE:.0%}")
    return 0 if share <= MOST_SHARE else 1


def measure(number: int, *, is_shared: bool) -> Measured:
    tag = uuid.uuid4().hex
    # The runtime directory has a socket, whose path must be short.
    with tempfile.TemporaryDirectory(prefix="ramherd-") as place, LLM({"wait": SCRIPT}) as llm:
        folder = Path(place)
        home = make_home("claude", folder, llm.url)
        env = {
            **home.env, TAG: tag, "XDG_STATE_HOME": str(folder / "state"),
            "RAMHERD_RUNTIME_DIR": str(folder / "ramherd"), "RAMHERD_MAX_CPU_PRESSURE": "none",
            "MCP_TIMEOUT": "300000",
        }  # fmt: skip
        (folder / "ramherd").mkdir(mode=0o700)
        with_args = share_servers(folder) if is_shared else copy_servers(folder)
        try:
            return run_claudes(number, home, llm, env, with_args, is_shared=is_shared)
        finally:
            stop_gateway(env)


def share_servers(folder: Path) -> dict[str, Any]:
    (folder / "state/ramherd").mkdir(mode=0o700, parents=True)
    write_registry(
        folder / "state/ramherd",
        {
            name: McpServer(name, command, share=mode)
            for name, (command, mode) in REAL_SERVERS.items()
        },
    )
    return {"mcp": list(REAL_SERVERS)}


def copy_servers(folder: Path) -> dict[str, Any]:
    """As a user's own settings start them."""
    tables = {
        name: {"command": command[0], "args": list(command[1:])}
        for name, (command, _mode) in REAL_SERVERS.items()
    }
    (folder / "servers.json").write_text(json.dumps({"mcpServers": tables}))
    return {"agent_args": [f"--mcp-config={folder}/servers.json", "--strict-mcp-config"]}


def run_claudes(
    number: int, home: Home, llm: LLM, env: dict[str, str], keys: dict[str, Any], *,
    is_shared: bool,
) -> Measured:  # fmt: skip
    jobs = [
        {
            "name": f"job-{one}", "agent": "claude", "prompt": "do it [script wait]",
            "cwd": str(home.cwd), "skip_permissions": True, **keys,
        }
        for one in range(number)
    ]  # fmt: skip
    text = "".join(f"{json.dumps(job)}\n" for job in jobs)
    command = [sys.executable, "-m", "ramherd", "run", "-", "--json"]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        await_waiting(llm, number, process)
        least = number if is_shared else number * (1 + len(REAL_SERVERS))
        pids = await_settled(env[TAG], least)
        sizes = [read_pss_bytes(pid) or 0 for pid in pids]
        llm.open("go")
        out, err = process.communicate(timeout=WAIT_S)
    assert json.loads(out)["done"] == number, err[-3000:]
    name = "one copy of each server, shared" if is_shared else "a copy of each server for each"
    return Measured(name, len(pids), sum(sizes))


def await_waiting(llm: LLM, number: int, process: "subprocess.Popen[str]") -> None:
    deadline_s = time.monotonic() + WAIT_S
    while len(llm.found("wait", 1)) < number:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline_s, "not all claudes wait"
        time.sleep(0.1)


def await_settled(tag: str, least: int) -> list[int]:
    """claude does not wait for servers that start slowly: the processes, once all are there."""
    deadline_s = time.monotonic() + WAIT_S
    found: list[int] = []
    while True:
        before, found = found, sorted(find_tagged(tag))
        if len(found) >= least and found == before:
            return found
        assert time.monotonic() < deadline_s, f"{len(found)} of {least} processes"
        time.sleep(SETTLE_S)


def find_tagged(tag: str) -> Iterator[int]:
    for proc in read_processes():
        if proc.id.pid != os.getpid() and read_variable(proc.id.pid, TAG) == tag:
            yield proc.id.pid


def stop_gateway(env: dict[str, str]) -> None:
    """Its last files are written when its process has ended."""
    command = [sys.executable, "-m", "ramherd", "mcp", "stop"]
    subprocess.run(command, env=env, capture_output=True, check=False)
    deadline_s = time.monotonic() + WAIT_S
    while list(find_tagged(env[TAG])) and time.monotonic() < deadline_s:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
