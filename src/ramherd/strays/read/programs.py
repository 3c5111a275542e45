"""The program of a process: its binary, or the script, package or module of an interpreter.

Its title is not used, which may be any text. Only the beginning of a command line is read, because
it may be a megabyte long, and the program comes first.
"""

import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from ramherd.core.procid import Process
from ramherd.strays.nouns import RunningProgram
from ramherd.system.proc_stat import PROC
from ramherd.system.procfs import read_cmdline, read_cwd, read_exe

COMMAND_BYTES = 4096
PACKAGE_BYTES = 1 << 18
SCRIPT_BYTES = 1 << 20
# The entry point of a package is rarely deeper below its package.json.
LEVELS_UP = 6
NODE, PYTHON = ("node", "nodejs", "bun", "deno"), ("python", "pypy")
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "busybox")
# Options of interpreters whose value is the next word.
WITH_VALUE = {
    "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions",
    "--env-file", "--title", "-X", "-W", "--cwd",
}  # fmt: skip
NO_SCRIPT = {"-e", "--eval", "-p", "--print", "-c", "-i"}
SDKS = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/server")
_MCP_WORD = re.compile(r"(^|[^a-z])mcp([^a-z]|$)")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.MULTILINE)
# The SDKs of MCP servers, and the request that each server answers.
_SPEAKS_MCP = re.compile(rb"modelcontextprotocol|\bfastmcp\b|\bmcp\.server\b|tools/list")
_REQUIRES_MCP = re.compile(r"^Requires-Dist:\s*(?:mcp|fastmcp)\b", re.MULTILINE | re.IGNORECASE)


def read_programs(processes: Iterable[Process], proc: str = PROC) -> dict[int, RunningProgram]:
    found = {}
    for process in processes:
        program = read_program(process.pid, proc)
        if program is not None:
            found[process.pid] = program
    return found


def read_program(pid: int, proc: str = PROC) -> RunningProgram | None:
    argv = read_cmdline(pid, proc, COMMAND_BYTES)
    if argv is None:
        return None
    exe = read_exe(pid, proc)
    if exe is None:
        return RunningProgram(argv[0] if argv else "", argv, readable=False)
    if interpreter_of(exe) == "":
        return RunningProgram(exe, argv, package_of_path(exe))
    return resolve(exe, argv, pid, proc)


def interpreter_of(exe: str) -> str:
    name = os.path.basename(exe)
    if name in NODE:
        return "node"
    if name.startswith(PYTHON):
        return "python"
    return "shell" if name in SHELLS else ""


def resolve(exe: str, argv: tuple[str, ...], pid: int, proc: str) -> RunningProgram:
    """The file that an interpreter runs, if there is one."""
    script, module = parse_script(interpreter_of(exe), argv)
    if script and not os.path.isabs(script):
        cwd = read_cwd(pid, proc)
        script = os.path.join(cwd, script) if cwd is not None else ""
    if script:
        path, package, is_mcp = find_script_package(script, argv[0])
        is_shell = interpreter_of(exe) == "shell"
        return RunningProgram(path, argv, package, is_script=True, is_mcp=is_mcp, is_shell=is_shell)
    if module:
        return RunningProgram(exe, argv, module=module, is_mcp=is_mcp_module(module, argv[0]))
    return RunningProgram(exe, argv, is_shell=interpreter_of(exe) == "shell")


def parse_script(interpreter: str, argv: tuple[str, ...]) -> tuple[str, str]:
    """(script, module) of an interpreter's command line; both empty for a title or none."""
    words = iter(argv[1:])
    for word in words:
        if interpreter == "python" and word.startswith("-m"):
            return "", word[2:] or next(words, "")
        if word in NO_SCRIPT or (interpreter == "shell" and is_command_option(word)):
            return "", ""
        if word in WITH_VALUE:
            next(words, "")
        elif word == "run" and interpreter == "node":
            continue
        elif not word.startswith("-"):
            return word, ""
    return "", ""


def is_command_option(word: str) -> bool:
    """`-c`, also among others: `bash -lc ...`."""
    return word.startswith("-") and not word.startswith("--") and "c" in word


@lru_cache(maxsize=1024)
def find_script_package(script: str, argv0: str) -> tuple[str, str, bool]:
    """(resolved path, package, whether the package is an MCP server)."""
    path = os.path.realpath(script)
    if (package := find_package(path)) is not None:
        name, is_mcp = package
        return path, package_of_path(path) or name, is_mcp
    return path, "", is_mcp_script(path, argv0)


def package_of_path(path: str) -> str:
    """`/x/node_modules/@scope/name/dist/index.js` belongs to @scope/name."""
    _before, found, rest = path.rpartition("/node_modules/")
    if not found:
        return ""
    words = rest.split("/")
    return "/".join(words[:2]) if words[0].startswith("@") else words[0]


def find_package(path: str) -> tuple[str, bool] | None:
    """(name, whether it is an MCP server) from the nearest package.json that has a name."""
    if not path.endswith((".js", ".mjs", ".cjs", ".ts", ".mts")) and "/node_modules/" not in path:
        return None
    for above in list(Path(path).parents)[:LEVELS_UP]:
        found = read_package(above / "package.json")
        if found is not None:
            return found
        if above.name == "node_modules":
            return None
    return None


def read_package(path: Path) -> tuple[str, bool] | None:
    try:
        with path.open("rb") as file:
            package = json.loads(file.read(PACKAGE_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(package, dict) or not isinstance(package.get("name"), str):
        return None
    return package["name"], is_mcp_package(package)


def is_mcp_package(package: dict[str, object]) -> bool:
    """If it declares itself one, or requires the SDK and has MCP in its name: many agents and other
    clients require the SDK too.
    """
    if isinstance(package.get("mcpName"), str):
        return True
    dependencies = package.get("dependencies")
    on_sdk = isinstance(dependencies, dict) and any(sdk in dependencies for sdk in SDKS)
    return on_sdk and _MCP_WORD.search(str(package["name"]).lower()) is not None


def is_mcp_script(path: str, argv0: str) -> bool:
    """A Python entry point: the distribution that it imports requires the SDK."""
    try:
        with open(path, "rb") as file:
            text = file.read(COMMAND_BYTES).decode(errors="replace")
    except OSError:
        return False
    if not text.startswith("#!") or "python" not in text.partition("\n")[0]:
        return False
    names = set(_IMPORT.findall(text)) - {"re", "sys"}
    return any(is_mcp_module(name, path) or is_mcp_module(name, argv0) for name in names)


@lru_cache(maxsize=1024)
def is_mcp_module(module: str, beside: str) -> bool:
    """Whether the module belongs to a distribution in that environment that is named after MCP and
    requires its SDK. `beside` is a file in the environment's `bin`.
    """
    name = module.partition(".")[0]
    if not _MCP_WORD.search(name.replace("_", "-").lower()):
        return False
    root = Path(beside).parent.parent
    for metadata in root.glob(f"lib/python3*/site-packages/{name}-*.dist-info/METADATA"):
        try:
            return _REQUIRES_MCP.search(metadata.read_text(errors="replace")) is not None
        except OSError:
            continue
    return False


@lru_cache(maxsize=256)
def speaks_mcp(script: str) -> bool:
    """Whether the text of a script is that of an MCP server. Read only of a process that is already
    known to be cut off, because a script may be a megabyte long.
    """
    try:
        with open(script, "rb") as file:
            return _SPEAKS_MCP.search(file.read(SCRIPT_BYTES)) is not None
    except OSError:
        return False
