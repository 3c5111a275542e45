"""Counts MCP servers and node processes: a part of a scan, for the start of a session."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ramherd.strays.judge.counts import is_node
from ramherd.strays.nouns import Kind
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
    found = [known.recognise(program) for program in programs.values()]
    return ProgramCounts(
        sum(software is not None and software.kind is Kind.MCP for software in found),
        sum(is_node(program.path, program.argv) for program in programs.values()),
    )
