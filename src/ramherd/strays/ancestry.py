"""Records the processes below an agent, for the time after its end.

Hooks call it on every tool call, so it imports os only: one line for each record, in a file of the
runtime directory that is void after a reboot. Two files of at most `LIMIT_BYTES` are kept.

    record_tree(runtime, pid, agent="claude", session="...", subagents=2)
"""

from __future__ import annotations

import os

from ramherd.system.files import open_private
from ramherd.system.proc_stat import read_start_ticks
from ramherd.system.procfs import read_boot_id, read_descendants, read_pid_namespace

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "ancestry"
LIMIT_BYTES = 1 << 20

# (agent, session, subagents, pid and start of the agent, pid and start of each process below it,
# those of them that are its MCP servers)
Record = tuple[str, str, int, tuple[int, int], list[tuple[int, int]], set[tuple[int, int]]]
SERVER = "mcp"


def record_tree(
    runtime: str, pid: int, *, agent: str, session: str = "", subagents: int = 0
) -> int:
    """Returns the number of recorded processes below `pid`; 0 for a process that is gone."""
    start = read_start_ticks(pid)
    if start is None:
        return 0
    below = [
        (child, ticks) for child in read_descendants(pid) if (ticks := read_start_ticks(child))
    ]
    append(runtime, (agent, session, subagents, (pid, start), below, set()))
    return len(below)


def append(runtime: str, record: Record) -> None:
    path = os.path.join(runtime, NAME)
    agent, session, subagents, root, below, servers = record
    words = [read_place(), agent, session or "-", str(subagents), f"{root[0]}:{root[1]}"]
    words += [f"{pid}:{start}{f':{SERVER}' * ((pid, start) in servers)}" for pid, start in below]
    line = " ".join("".join(word.split()) for word in words) + "\n"
    fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        # One write, so that lines of concurrent hooks do not mix.
        os.write(fd, line.encode(errors="replace"))
        full = os.fstat(fd).st_size > LIMIT_BYTES
    finally:
        os.close(fd)
    if full:
        os.replace(path, f"{path}.old")


def read_records(runtime: str) -> Iterator[Record]:
    """The records of this boot and this pid namespace, the oldest first."""
    here = read_place()
    for name in (f"{NAME}.old", NAME):
        try:
            with open(os.path.join(runtime, name), errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            record = parse_record(line.split(), here)
            if record is not None:
                yield record


def parse_record(words: list[str], here: str) -> Record | None:
    """None for another boot, and for a line that a full disk cut short."""
    if len(words) < 5 or words[0] != here:
        return None
    try:
        root, *below = [parse_process(word) for word in words[4:]]
        servers = {parse_process(word) for word in words[5:] if word.endswith(f":{SERVER}")}
        return words[1], words[2].strip("-"), int(words[3]), root, below, servers
    except ValueError:
        return None


def parse_process(word: str) -> tuple[int, int]:
    pid, start = word.removesuffix(f":{SERVER}").split(":")
    return int(pid), int(start)


def read_place() -> str:
    """Where a pid with its start identifies a process: this boot, this pid namespace."""
    return f"{read_boot_id()}/{read_pid_namespace()}"
