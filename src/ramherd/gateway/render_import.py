"""The text of `ramherd mcp import`. Arguments and variables are not shown: they may be secrets."""

import os
from collections.abc import Sequence

from ramherd.core.units import count
from ramherd.gateway.import_servers import (
    CHANGED,
    NEW,
    REFUSED,
    SAME,
    TWIN,
    ImportedServer,
)

WORDS = {NEW: "taken", CHANGED: "updated", SAME: "known already", TWIN: "the same server again"}


def render_import(
    results: Sequence[ImportedServer], errors: Sequence[str], *, is_dry_run: bool
) -> list[str]:
    if not results and not errors:
        return ["no MCP servers were found in the settings of agents"]
    lines = [render_result(one) for one in results]
    lines += [f"not read: {error}" for error in errors]
    new = sum(one.result in (NEW, CHANGED) for one in results)
    done = "would be taken (dry run)" if is_dry_run else "taken"
    refused = sum(one.result == REFUSED for one in results)
    lines.append(f"{count(new, 'server')} {done}, {refused} not")
    if new and not is_dry_run:
        lines.append("next: ramherd mcp list, ramherd mcp enable claude")
    return lines


def render_result(one: ImportedServer) -> str:
    source = f"{one.own.agent}, {shorten_home(one.own.path)}"
    if one.result == REFUSED:
        return f"{one.own.name}: not taken: {one.reason} ({source})"
    renamed = f" as {one.name}" if one.name != one.own.name else ""
    return f"{one.own.name}: {WORDS[one.result]}{renamed} ({source})"


def shorten_home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
