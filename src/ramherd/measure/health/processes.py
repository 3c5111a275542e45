"""Agents and MCP servers that run now, told by their programs' names."""

import re
from collections.abc import Iterator, Sequence

from ramherd.health.facts import ProcRow
from ramherd.measure.health.clis import NAMES
from ramherd.measure.health.host import Host
from ramherd.measure.health.pressure import read_argv
from ramherd.measure.procfs import read_anonymous_bytes, read_procs

_MCP = re.compile(r"(?:^|[-_/@.])mcp(?:[-_/@.]|$)|modelcontextprotocol", re.IGNORECASE)
# Those that start a server's file; what they start is what it is.
RUNTIMES = {"node", "bun", "python", "python3", "npx", "npm", "uvx", "uv", "deno"}


def read_rows(host: Host) -> Iterator[ProcRow]:
    for proc in read_procs(host.proc):
        argv = read_argv(proc.id.pid, host.proc)
        if argv and proc.is_alive and (told := tell(argv)) is not None:
            kind, name = told
            used = read_anonymous_bytes(proc.id.pid, host.proc)
            yield ProcRow(proc.id.pid, name, kind, used, "\0".join(argv))


def tell(argv: Sequence[str]) -> tuple[str, str] | None:
    """(kind, name). Only the program and, of a runtime, the file it runs: other arguments may
    be prompts, which hold any word.
    """
    program = argv[0].rsplit("/", 1)[-1]
    file = next((word for word in argv[1:] if not word.startswith("-")), "")
    words = [argv[0], file] if program in RUNTIMES else [argv[0]]
    for word in words:
        if (name := word.rsplit("/", 1)[-1].removesuffix(".js")) in NAMES:
            return "agent", name
    for word in words:
        if _MCP.search(word):
            return "mcp", short(word)
    return None


def short(word: str) -> str:
    """The package, where the file is inside of one."""
    _above, _, package = word.rpartition("node_modules/")
    parts = package.split("/")
    if len(parts) == len(word.split("/")):
        return parts[-1]
    return "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]
