"""`ramherd mcp` as a user calls it, with a fake server in the settings of agents."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Ramherd, await_, make_ramherd, ours
from integration.gateway.conftest import FAKE
from ramherd.act.gateway_process import read_gateway
from ramherd.gateway.usage import write_usage
from ramherd.store.mcp_clients import CLIENTS

# As systemd starts the program of a socket unit.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, "-m", "ramherd", "mcp", "serve"])
"""
SECRET = "sk-very-secret"


@pytest.fixture
def user(tmp_path: Path, strong_pen: str) -> Iterator[Ramherd]:
    """A user of Claude Code and Codex with a server in each."""
    made = make_ramherd(tmp_path, strong_pen)
    made.env |= {"HOME": str(tmp_path / "home"), "RAMHERD_PEN": strong_pen}
    home = Path(made.env["HOME"])
    (home / ".codex").mkdir(parents=True)
    table = {"command": sys.executable, "args": [FAKE], "env": {"KEY": SECRET}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"notes": table}}, indent=3))
    lines = ['model = "m"  # mine', "[mcp_servers.tasks]", f'command = "{sys.executable}"']
    (home / ".codex/config.toml").write_text("\n".join([*lines, f'args = ["{FAKE}"]', ""]))
    (home / ".codex/config.toml").chmod(0o644)
    yield made
    made.run("mcp", "stop")
    await_(lambda: not ours(), "the gateway is gone")


def home_of(user: Ramherd) -> Path:
    return Path(user.env["HOME"])


def runtime_of(user: Ramherd) -> Path:
    return Path(user.env["RAMHERD_RUNTIME_DIR"])


def test_import_and_list(user: Ramherd) -> None:
    """Nothing starts, and no secret is printed; the registry is private."""
    imported = user.run("mcp", "import")
    listed = user.run("mcp", "list")
    status = user.run("mcp", "status")

    assert "notes: taken (claude, ~/.claude.json)" in imported.stdout, imported.stderr
    assert "tasks: taken (codex, ~/.codex/config.toml)" in imported.stdout
    assert "per-agent" in listed.stdout
    assert "the gateway does not run" in status.stdout
    assert SECRET not in imported.stdout + imported.stderr + listed.stdout + status.stdout
    registry = user.state / "ramherd/mcp/servers.json"
    assert registry.stat().st_mode & 0o777 == 0o600
    assert SECRET in registry.read_text()
    assert read_gateway(runtime_of(user)) is None


def test_enable_and_disable(user: Ramherd) -> None:
    """The files are the same byte for byte, with their modes; the token is gone."""
    files = home_of(user) / ".claude.json", home_of(user) / ".codex/config.toml"
    before = [(file.read_bytes(), file.stat().st_mode) for file in files]
    for agent in ("claude", "codex"):
        enabled = user.run("mcp", "enable", agent)
        assert "uses the gateway for" in enabled.stdout, enabled.stderr
        assert "uses the gateway already" in user.run("mcp", "enable", agent).stdout
    assert all(b"http://127.0.0.1:" in file.read_bytes() for file in files)
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    clients = user.state / "ramherd" / CLIENTS
    assert len(list(clients.glob("*.json"))) == 2
    for agent in ("claude", "codex"):
        assert "is restored" in user.run("mcp", "disable", agent).stdout
        assert "does not use the gateway" in user.run("mcp", "disable", agent).stdout

    assert [(file.read_bytes(), file.stat().st_mode) for file in files] == before
    assert list(clients.glob("*.json")) == []


def test_the_first_verb_starts_the_gateway_for_enabled_sessions(user: Ramherd) -> None:
    """After a reboot, on a machine without systemd."""
    user.run("mcp", "enable", "claude")
    user.run("mcp", "stop")
    await_(lambda: read_gateway(runtime_of(user)) is None, "the gateway has ended")
    user.run("jobs")

    await_(lambda: read_gateway(runtime_of(user)) is not None, "the gateway runs again")


def test_probe(user: Ramherd) -> None:
    """The verdict is stored and used, unless the settings say otherwise."""
    user.run("mcp", "import")
    refused = user.run("mcp", "probe", "tasks")
    probed = user.run("mcp", "probe", "tasks", "--tool", 'echo={"text": "x"}', "--json")
    private = user.run("mcp", "probe", "tasks", "--tool", "pid")

    assert "no tool of the server declares that it only reads" in refused.stderr
    verdict = json.loads(probed.stdout)
    assert (verdict["mode"], verdict["evidence"]["compared"]) == ("per-agent", 2)
    assert "add" in verdict["evidence"]["untested"]
    assert "its answers differ even between private processes" in private.stdout
    assert "even between private processes" in " ".join(user.run("mcp", "list").stdout.split())


def test_a_server_that_is_not_there(user: Ramherd) -> None:
    """One line, with the name that was meant."""
    user.run("mcp", "import")
    for words in (("restart", "nots"), ("probe", "nots"), ("remove", "nots")):
        failed = user.run("mcp", *words)
        assert failed.returncode == 2
        assert failed.stderr.splitlines() == [
            "ramherd: no MCP server is named 'nots'", "  hint: did you mean 'notes'?",
        ]  # fmt: skip


def test_remove_and_restart(user: Ramherd) -> None:
    """An imported server is forgotten; one that does not run is not an error."""
    user.run("mcp", "import")
    assert "notes was not running" in user.run("mcp", "restart", "notes").stdout
    assert user.run("mcp", "remove", "notes").stdout == "removed notes\n"
    assert "notes" not in user.run("mcp", "list").stdout


def test_servers_that_nobody_uses_are_marked(user: Ramherd) -> None:
    """Two weeks after the last call."""
    user.run("mcp", "import")
    old = {"calls": 3, "last_used_at_s": 1000.0, "known_at_s": 0.0}
    write_usage(user.state / "ramherd", {"notes": old})

    rows = json.loads(user.run("mcp", "list", "--json").stdout)["servers"]
    assert {row["name"]: row["is_unused"] for row in rows} == {"notes": True, "tasks": False}


def test_a_socket_of_systemd_is_taken_over(user: Ramherd) -> None:
    """It is passed as descriptor 3, with our pid in the environment."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        process = subprocess.Popen(
            [sys.executable, "-c", ACTIVATE, str(made.fileno())], env=user.env,
            pass_fds=[made.fileno()],
        )  # fmt: skip
        address = await_(lambda: read_gateway(runtime_of(user)), "the gateway runs")
        process.terminate()
        process.wait(20)
        assert address.port == made.getsockname()[1]
