"""Real agents with MCP servers of the gateway: they list and call a tool; no token is visible."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import AGENTS, Home, make_home
from e2e.agents.test_run_agents import asks, herd_of
from integration.conftest import await_, ours
from llm import LLM
from ramherd.store.mcp_clients import CLIENTS
from ramherd.store.mcp_servers import McpServer, write_registry
from ramherd.system.procfs import read_variable

ZOO = Path(__file__).parents[3] / ".tools/zoo/node_modules"
EVERYTHING = ZOO / "@modelcontextprotocol/server-everything/dist/index.js"
# The name that each CLI gives to the tool `echo` of the server `everything`.
ECHO = {"gemini": "mcp_everything_echo", "opencode": "everything_echo"}
OWN_SCRIPT = 'echo started >> "$HOME/own.log"; exec cat > /dev/null'
OWN = {"command": "sh", "args": ["-c", OWN_SCRIPT]}


@pytest.fixture(scope="session")
def everything() -> str:
    if not EVERYTHING.exists():
        message = "the MCP servers are not installed: make zoo-tools"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return str(EVERYTHING)


class McpHerd:
    """ramherd with one MCP server, and an agent with another one in its own settings."""

    def __init__(self, home: Home, folder: Path, server: str) -> None:
        self.home, self.ramherd = home, herd_of(home, folder)
        self.runtime = Path(self.ramherd.env["RAMHERD_RUNTIME_DIR"])
        add_own_server(home)
        servers = {"everything": McpServer("everything", ("node", server))}
        (self.ramherd.state / "ramherd").mkdir(mode=0o700, parents=True)
        write_registry(self.ramherd.state / "ramherd", servers)

    @property
    def clients(self) -> list[Path]:
        return list((self.runtime / CLIENTS).glob("*.json"))

    def read_server(self) -> dict[str, Any]:
        status = json.loads(self.ramherd.run("mcp", "status", "--json").stdout)
        (server,) = status["servers"]
        return dict(server)

    @property
    def has_started_own(self) -> bool:
        return (Path(self.home.env["HOME"]) / "own.log").exists()


def add_own_server(home: Home) -> None:
    folder = Path(home.env["HOME"])
    match home.agent.name:
        case "claude":
            (folder / ".claude.json").write_text(json.dumps({"mcpServers": {"own": OWN}}))
        case "codex":
            lines = f'\n[mcp_servers.own]\ncommand = "sh"\nargs = {json.dumps(OWN["args"])}\n'
            with (folder / ".codex/config.toml").open("a") as file:
                file.write(lines)
        case "opencode":
            own = {"own": {"type": "local", "command": ["sh", *OWN["args"]], "enabled": True}}
            merge(folder / ".config/opencode/opencode.json", {"mcp": own})
        case name:
            merge(folder / f".{name}/settings.json", {"mcpServers": {"own": OWN}})


def merge(path: Path, more: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **more}))


@pytest.fixture
def make_herd(
    installed: None, tmp_path: Path, llm: LLM, everything: str
) -> Iterator[Any]:  # fmt: skip
    made: list[McpHerd] = []

    def make(name: str) -> McpHerd:
        made.append(McpHerd(make_home(name, tmp_path, llm.url), tmp_path, everything))
        call = {"name": ECHO.get(name, "mcp__everything__echo"), "args": {"message": "hello"}}
        llm.add({"echo": [{"call": [call], "gate": "go"}, {"say": "Called it."}]})
        return made[-1]

    yield make
    for one in made:
        one.ramherd.run("mcp", "stop")
        await_(lambda: not ours(), "the gateway is gone")


def results(llm: LLM) -> list[str]:
    return [text for talk in llm.of("echo") for text in talk.texts("result")]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_calls_a_tool_of_the_gateway(name: str, make_herd: Any, llm: LLM) -> None:
    """It gets the servers of its job and no others; no command line has its token, which ends with
    the run.
    """
    herd = make_herd(name)
    text = json.dumps(asks(herd.home, "do it [script echo]", mcp=["everything"])[0])
    started = herd.ramherd.start("run", "-", "--json", "--pen", herd.ramherd.pen, stdin=text)
    await_(lambda: llm.found("echo", 0), "the agent asks the model", 60.0)
    tokens = {token for pid in ours() if (token := read_variable(pid, "RAMHERD_MCP_TOKEN"))}
    lines = [line for pid in ours() if (line := read_command_line(pid))]
    clients = herd.clients
    llm.open("go")
    assert started.process.wait(60) == 0, started.err.read_text()

    assert (len(tokens), len(clients)) == (1, 1)
    assert lines
    assert not any(token.encode() in line for token in tokens for line in lines)
    assert any("Echo: hello" in text for text in results(llm)), results(llm)
    assert not herd.has_started_own
    assert herd.clients == []
    await_(lambda: herd.read_server()["clients"] == 0, "the gateway ends its session")
    assert herd.read_server()["processes"] == 1


def read_command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_an_agent_that_is_restarted_keeps_its_servers(
    name: str, make_herd: Any, llm: LLM
) -> None:  # fmt: skip
    """In the same session, with a token of its own."""
    herd = make_herd(name)
    llm.open("go")
    call = llm.scripts["echo"][0]
    llm.add({"echo": [call, {"shell": "echo x"}, {"say": "Through.", "wait_s": 6}]})
    jobs = asks(herd.home, "do - it [script echo]", mcp=["everything"])
    summary = herd.ramherd.json(jobs, "--recycle-at", "16MiB")

    assert (summary["done"], summary["recycled"]) == (1, 1), summary["lines"]
    assert any("Echo: hello" in text for text in results(llm))
    assert herd.clients == []


def test_warm_agents_share_one_token(make_herd: Any, llm: LLM) -> None:
    """The process of several jobs is one client, until it ends."""
    herd = make_herd("claude")
    llm.open("go")
    jobs = asks(herd.home, *["do it [script echo]"] * 3, mcp=["everything"], reuse=3)
    summary = herd.ramherd.json(jobs, "--max-parallel", "1")

    assert summary["done"] == 3, summary["lines"]
    assert sum("Echo: hello" in text for text in results(llm)) >= 3
    pids = {line for line in summary["lines"].splitlines() if "reuses" in line}
    assert len(pids) <= 3
    assert herd.clients == []


def test_without_a_gateway_an_agent_starts_and_says_so(
    make_herd: Any, llm: LLM, tmp_path: Path
) -> None:
    """A gateway that cannot start is no reason to fail."""
    herd = make_herd("claude")
    state = herd.ramherd.state / "ramherd/mcp"
    # The gateway cannot write its log.
    (state / "gateway.log").mkdir()
    summary = herd.ramherd.json(asks(herd.home, "do it [script hello]", mcp=["everything"]))

    assert summary["done"] == 1, summary["lines"]
    assert "the MCP gateway does not run: the agent starts without everything" in summary["lines"]
    assert not herd.has_started_own


def test_a_misspelt_server_is_one_line(make_herd: Any) -> None:
    """Before anything starts."""
    herd = make_herd("claude")
    failed = herd.ramherd.run("run", "--mcp", "evrything", "do it")

    assert failed.returncode == 2
    assert "no MCP server is named 'evrything'" in failed.stderr
    assert "did you mean 'everything'?" in failed.stderr


def test_the_users_own_sessions_use_the_gateway(make_herd: Any, llm: LLM) -> None:
    """`enable` and `disable`: the file is the same byte for byte, and its servers were shared."""
    herd = make_herd("claude")
    llm.open("go")
    settings = Path(herd.home.env["HOME"]) / ".claude.json"
    own = {"everything": {"command": "node", "args": [str(EVERYTHING)]}}
    text = json.dumps({"mcpServers": own})
    settings.write_text(text)
    enabled = herd.ramherd.run("mcp", "enable", "claude")
    assert "uses the gateway for everything" in enabled.stdout, enabled.stderr
    assert settings.stat().st_mode & 0o077 == 0
    herd.home.start("do it [script echo]").finish()
    disabled = herd.ramherd.run("mcp", "disable", "claude")

    assert any("Echo: hello" in text for text in results(llm)), results(llm)
    assert "restored" in disabled.stdout
    # Claude Code has written the file meanwhile.
    assert json.loads(settings.read_text())["mcpServers"] == own
