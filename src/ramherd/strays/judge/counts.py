"""Warnings about too many processes of a kind. Hooks check this at the start of each session, so it
imports less than the other warning signs.
"""

from ramherd.strays.nouns import WarningSign

NODES = ("node", "nodejs", "bun")


def is_node(path: str, argv: tuple[str, ...]) -> bool:
    """By the binary, or by the called command if the path is its script's."""
    names = (path.rpartition("/")[2], argv[0].rpartition("/")[2] if argv else "")
    return any(name in NODES for name in names)


def warn_of_servers(servers: int, most: int) -> list[WarningSign]:
    return [WarningSign("mcp", servers, most + 1)] if servers > most else []


def warn_of_nodes(nodes: int, limit: int) -> list[WarningSign]:
    return [WarningSign("node", nodes, limit)] if nodes >= limit else []


def warn_of_subagents(count: int, most: int, pid: int, software: str) -> list[WarningSign]:
    return [WarningSign("subagents", count, most + 1, pid, software)] if count > most else []
