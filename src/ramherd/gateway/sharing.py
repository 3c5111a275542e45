"""Which agents may share one process of an MCP server, and why. Pure.

A share mode is `shared`, `serial` (one call at a time), `per-workspace` (one process for each
working directory), `per-agent` or `pool:N`.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ramherd.store.mcp_servers import McpServer

SHARED, SERIAL, WORKSPACE, AGENT = "shared", "serial", "per-workspace", "per-agent"
POOL_PREFIX = "pool:"


class KnownServer(NamedTuple):
    """`packages` are npm or PyPI packages, and names of programs. `is_tested`: the mode was tested
    with real calls of two clients; the others are known from their documentation.
    """

    packages: tuple[str, ...]
    share: str
    reason: str
    is_tested: bool = False


# Evidence: two clients on one process beside two private processes.
KNOWN = (
    KnownServer(
        ("@modelcontextprotocol/server-everything",), SHARED,
        "calls keep no state; its tools depend on the client's capabilities, which are in the key",
        True,
    ),
    KnownServer(
        ("@modelcontextprotocol/server-memory",), SERIAL,
        "rewrites one file: of 100 concurrent writes 16 remain, of 100 serial writes all", True,
    ),
    KnownServer(
        ("@modelcontextprotocol/server-sequential-thinking",), AGENT,
        "its history of thoughts is one for the process", True,
    ),
    KnownServer(
        ("@modelcontextprotocol/server-filesystem",), WORKSPACE,
        "the roots of a client replace the directories of the whole process", True,
    ),
    KnownServer(
        ("@playwright/mcp",), AGENT, "two clients would drive one page", True,
    ),
    KnownServer(("@upstash/context7-mcp", "context7-mcp"), SHARED, "reads documentation only"),
    KnownServer(("mcp-server-fetch",), SHARED, "calls keep no state"),
    KnownServer(("mcp-server-time",), SHARED, "calls keep no state"),
    KnownServer(
        ("@modelcontextprotocol/server-brave-search", "@brave/brave-search-mcp-server",
         "tavily-mcp", "exa-mcp-server", "firecrawl-mcp"), SHARED,
        "web search with one credential",
    ),
    KnownServer(
        ("@modelcontextprotocol/server-github", "github-mcp-server", "@sentry/mcp-server",
         "@notionhq/notion-mcp-server", "mcp-server-sentry"), SHARED,
        "wraps an API with one credential",
    ),
    KnownServer(
        ("mcp-server-git",), WORKSPACE, "works in one repository",
    ),
    KnownServer(
        ("mcp-server-sqlite", "@modelcontextprotocol/server-sqlite"), SERIAL,
        "writes one database file",
    ),
    KnownServer(
        ("serena", "mcp-language-server", "code-index-mcp"), WORKSPACE,
        "indexes one working directory",
    ),
    KnownServer(
        ("chrome-devtools-mcp", "@modelcontextprotocol/server-puppeteer"), AGENT,
        "two clients would drive one browser",
    ),
    KnownServer(
        ("desktop-commander", "@wonderwhy-er/desktop-commander", "mcp-shell-server",
         "jupyter-mcp-server"), AGENT,
        "shells and notebooks keep state between calls",
    ),
)  # fmt: skip
UNKNOWN = "unknown server: nothing shows that clients can share it (ramherd mcp probe NAME)"
CONFIGURED = "set by the user"
# A package with its version: @scope/name@1.2, name==1.2, name@latest.
_VERSION = re.compile(r"(?<=.)(@[^/@]*|[=<>~!]=.*)$")
# Variables that differ between two agents of one user, and that no server depends on.
_PER_AGENT_VARIABLES = re.compile(
    r"RAMHERD_.*|TMPDIR|PWD|OLDPWD|SHLVL|_|TERM|TERM_.*|COLUMNS|LINES|CLAUDE.*|CODEX_.*|GEMINI_CLI.*"
    r"|OPENCODE.*|SSH_(CLIENT|CONNECTION|TTY)|WINDOWID|TMUX.*|STY|XDG_SESSION_.*|INVOCATION_ID"
    r"|JOURNAL_STREAM"
)


class ShareChoice(NamedTuple):
    mode: str
    reason: str

    @property
    def copies(self) -> int:
        """How many processes serve one key."""
        return int(self.mode.removeprefix(POOL_PREFIX)) if self.mode.startswith(POOL_PREFIX) else 1

    @property
    def is_serial(self) -> bool:
        return self.mode == SERIAL


def choose_share(
    server: McpServer, verdicts: Mapping[str, ShareChoice] | None = None
) -> ShareChoice:
    """The user's choice, else what was tested, else the verdict of `ramherd mcp probe`, else what
    is documented. A probe calls few tools: it does not overrule a test of the whole server.
    """
    if server.share is not None:
        return ShareChoice(server.share, CONFIGURED)
    words = {package_name(word) for word in server.command} | modules_of(server.command)
    known = next((one for one in KNOWN if words.intersection(one.packages)), None)
    if verdicts and server.name in verdicts and not (known is not None and known.is_tested):
        return verdicts[server.name]
    return ShareChoice(AGENT, UNKNOWN) if known is None else ShareChoice(known.share, known.reason)


def modules_of(command: Sequence[str]) -> set[str]:
    """`python -m mcp_server_time` runs the package mcp-server-time."""
    return {name.replace("_", "-") for option, name in pairwise(command) if option == "-m"}


def package_name(word: str) -> str:
    """The package that a word of a command names, by itself or as a path below node_modules."""
    if "node_modules/" in word:
        parts = word.rsplit("node_modules/", 1)[1].split("/")
        return "/".join(parts[:2]) if parts[0].startswith("@") and len(parts) > 1 else parts[0]
    bare = _VERSION.sub("", word)
    return bare if bare.startswith("@") else bare.rsplit("/", 1)[-1]


class ClientTraits(NamedTuple):
    """What of a client may be part of the key. `era` is that of the protocol."""

    era: str
    capabilities: Mapping[str, Any]
    cwd: str
    # The token's hash, for servers that no two agents share.
    token_hash: str


def share_key(server: McpServer, mode: str, env: Mapping[str, str], traits: ClientTraits) -> str:
    """Clients with the same key share a process. In the newer era each request has the client's
    capabilities, so they are no part of the key.
    """
    parts: dict[str, Any] = {
        "argv": server.command, "env": filter_environment(env), "era": traits.era,
        "cwd": server.cwd,
    }  # fmt: skip
    if traits.era == "legacy":
        parts["capabilities"] = traits.capabilities
    if mode in (WORKSPACE, AGENT):
        parts["workspace"] = traits.cwd
    if mode == AGENT:
        parts["client"] = traits.token_hash
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def filter_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in env.items() if not _PER_AGENT_VARIABLES.fullmatch(name)
    }  # fmt: skip
