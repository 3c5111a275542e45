"""macOS: processes, their programs and their other ends, from the output of ps and lsof.

Written from their manual pages, not tried on a Mac, and not used yet: `scan.py` reads /proc. ps
shows no session and joins words with spaces, so a program whose path has a space is recognized only
by its binary; it shows no environment, so tools of agents have no marks here.
"""

import re
import time
from collections.abc import Iterable, Iterator

from ramherd.core.procid import Process, ProcId
from ramherd.core.units import KIB
from ramherd.strays.nouns import Details, PeerState, RunningProgram
from ramherd.strays.read.programs import (
    find_script_package,
    interpreter_of,
    package_of_path,
    parse_script,
)

TABLE = ("env", "LC_ALL=C", "ps", "-axwwo", "pid,ppid,pgid,tty,uid,rss,time,lstart,state,comm")
COMMANDS = ("env", "LC_ALL=C", "ps", "-axwwo", "pid,args")
# Own and connected descriptors of some processes, one field per line.
OPEN_FILES = ("lsof", "-nPw", "-F", "pftnT", "-p")
_LINE = re.compile(
    r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(?:(\d+):)?(\d+):([\d.]+)"
    r"\s+(\w{3} .{15} \d{4})\s+(\S+)\s+(.+)"
)
_STARTED = "%a %b %d %H:%M:%S %Y"
NO_TERMINAL = ("??", "?", "-")
TICKS_PER_S = 100


def parse_table(text: str) -> dict[int, Process]:
    """Start times are in seconds: with the pid still the best identity available."""
    found = {}
    for line in text.splitlines()[1:]:
        match = _LINE.fullmatch(line.rstrip())
        if match is None or match[11].startswith("Z"):
            continue
        pid, ppid, pgid, tty, uid, rss, hours, minutes, seconds, started, _state, path = (
            match.groups()
        )
        start_s = int(time.mktime(time.strptime(started, _STARTED)))
        cpu_s = int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
        found[int(pid)] = Process(
            ProcId(int(pid), start_s), path.rpartition("/")[2], match[11][0], int(ppid), int(pgid),
            0, 0 if tty in NO_TERMINAL else 1, int(uid), round(cpu_s * TICKS_PER_S),
            int(rss) * KIB,
        )  # fmt: skip
    return found


def parse_programs(table: str, commands: str) -> dict[int, RunningProgram]:
    """`comm` is the path of the binary, and `args` has the called command."""
    argv = dict(split_commands(commands))
    found = {}
    for line in table.splitlines()[1:]:
        match = _LINE.fullmatch(line.rstrip())
        if match is not None:
            pid = int(match[1])
            found[pid] = program_of(match[12], argv.get(pid, ()))
    return found


def split_commands(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    for line in text.splitlines()[1:]:
        pid, _space, command = line.strip().partition(" ")
        if pid.isdigit():
            yield int(pid), tuple(command.split())


def program_of(path: str, argv: tuple[str, ...]) -> RunningProgram:
    interpreter = interpreter_of(path)
    script, module = parse_script(interpreter, argv) if interpreter else ("", "")
    # Relative to a directory that ps does not show.
    if script.startswith("/"):
        resolved, package, is_mcp = find_script_package(script, argv[0])
        return RunningProgram(resolved, argv, package, is_script=True, is_mcp=is_mcp)
    return RunningProgram(path, argv, package_of_path(path), module)


def parse_open_files(text: str) -> dict[int, Details]:
    """The output of `lsof -F` for each process: `f` begins a descriptor and `p` a process."""
    found = {}
    for pid, files in split_processes(text.splitlines()):
        stdin, stdout, stderr = (end_of(files.get(fd)) for fd in ("0", "1", "2"))
        found[pid] = Details(
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            on_terminal=PeerState.TERMINAL in (stdin, stdout, stderr),
            keeps_terminal=any(fields.get("n") == "/dev/ptmx" for fields in files.values()),
            listens=tuple(
                fields.get("n", "").rpartition(":")[2]
                for fields in files.values()
                if fields.get("T") == "ST=LISTEN"
            ),
            clients=tuple(0 for fields in files.values() if fields.get("T") == "ST=ESTABLISHED"),
        )
    return found


def split_processes(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, dict[str, str]]]]:
    """(pid, descriptor -> field -> value); of several `T` fields the connection state is used."""
    pid, files, fields = 0, {}, {}  # type: tuple[int, dict[str, dict[str, str]], dict[str, str]]
    for line in lines:
        key, value = line[:1], line[1:]
        if key == "p":
            if pid:
                yield pid, files
            pid, files = int(value), {}
        elif key == "f":
            fields = files.setdefault(value, {})
        elif key != "T" or value.startswith("ST="):
            fields[key] = value
    if pid:
        yield pid, files


def end_of(fields: dict[str, str] | None) -> PeerState:
    """lsof names the other end of a pipe or socket, `->0x...`, while there is one."""
    if fields is None:
        return PeerState.NONE
    kind, name = fields.get("t", ""), fields.get("n", "")
    if name.startswith("/dev/tty"):
        return PeerState.TERMINAL
    if kind in ("PIPE", "unix"):
        return PeerState.LIVE if "->" in name else PeerState.GONE
    return PeerState.NONE if kind in ("CHR", "REG", "DIR") else PeerState.UNKNOWN
