"""Counts MCP servers and node processes: a part of a scan, for the start of a session."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ramherd.core.procid import Process
from ramherd.strays.judge.counts import is_node
from ramherd.strays.nouns import Kind, RunningProgram, Software
from ramherd.system.procfs import read_table


class ProgramCounts(NamedTuple):
    servers: int = 0
    nodes: int = 0


def read_program_counts(tables: Mapping[str, tuple[Any, str]], least: int) -> ProgramCounts:
    """`tables` are those of [software.NAME]. With no more than `least` processes nothing is
    counted: a count takes 40 ms for 1000 processes.
    """
    processes = read_table()
    if len(processes) <= least:
        return ProgramCounts()
    from ramherd.strays.judge.software import SoftwareTable, parse_software  # noqa: PLC0415
    from ramherd.strays.read.programs import read_programs  # noqa: PLC0415 - 8 ms together

    programs, known = read_programs(processes.values()), SoftwareTable(parse_software(tables))
    found = {
        pid: software
        for pid, program in programs.items()
        if (software := known.recognise(program)) is not None
    }
    own = find_own_servers(processes, programs, found, known.agents)
    return ProgramCounts(
        len(own) + sum(software.kind is Kind.MCP for software in found.values()),
        sum(is_node(program.path, program.argv) for program in programs.values()),
    )


def find_own_servers(
    processes: Mapping[int, Process],
    programs: Mapping[int, RunningProgram],
    software: Mapping[int, Software],
    agents: tuple[Software, ...],
) -> Mapping[int, Software]:
    """Servers of the user's own, below live agents."""
    from ramherd.strays.judge.own_servers import find_servers_of_agents  # noqa: PLC0415
    from ramherd.strays.judge.process_tree import ProcessTree  # noqa: PLC0415
    from ramherd.strays.read.listeners import read_sockets  # noqa: PLC0415
    from ramherd.strays.read.process_probe import Probe  # noqa: PLC0415

    if not any(one.kind is Kind.AGENT for one in software.values()):
        return {}
    tree = ProcessTree(processes, software, {})
    return find_servers_of_agents(tree, programs, Probe(agents, read_sockets()).read_ends)
