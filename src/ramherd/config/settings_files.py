"""Files with settings: `ramherd.toml` upwards from here, then the user's `config.toml`.

Both are read, key by key: a key that the project's file does not set may be in the user's. A key
that is spelled nearly like one of ours is an error. Other unknown keys are left out with a warning:
they may belong to another tool, or to a newer ramherd.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ramherd.config.keys import (
    ALIASES,
    BY_NAME,
    PREFIX,
    Layer,
    Report,
    Setting,
    Warn,
    add_unit,
    parse_at,
    refuse,
    resolve,
    variable_of,
)
from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.jobs.schema import PROFILE_KEYS
from ramherd.system.user_files import decode, read_bytes

PROJECT_FILE = "ramherd.toml"
USER_FILE = "ramherd/config.toml"
# A key this similar to one of ours is a typing error: `buget` and `budget` are 0.91 alike,
# `telemetry` and `memory` 0.53.
NEAR = 0.75
PROFILE = "profile"
SOFTWARE = "software"
MCP, SERVERS = "mcp", "servers"
Tables = Mapping[str, Any]


class Files(NamedTuple):
    """The settings of all files. `paths` has the nearest file first; its keys win."""

    paths: tuple[str, ...]
    settings: Layer
    profiles: Mapping[str, Layer]
    # [software.NAME] of all files, for `ramherd ps`, which checks them.
    software: Mapping[str, tuple[Any, str]] = {}
    # [mcp.servers.NAME] of the user's file, for the gateway, which checks them.
    servers: Mapping[str, tuple[Any, str]] = {}
    # A line for each key that was left out.
    warnings: tuple[str, ...] = ()


def find_files(cwd: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The files that exist, the nearest first."""
    at, above = cwd, ""
    while at != above:
        if os.path.isfile(path := os.path.join(at, PROJECT_FILE)):
            yield path
            break
        at, above = os.path.dirname(at), at
    base = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    if os.path.isfile(path := os.path.join(base, USER_FILE)):
        yield path


def read_files(
    cwd: str, environ: Mapping[str, str], report: Report = refuse, personal: Collection[str] = ()
) -> Files:
    """Only the user's own file may set the keys in `personal`."""
    paths = tuple(find_files(cwd, environ))
    settings: dict[str, Setting] = {}
    profiles: dict[str, Layer] = {}
    software: dict[str, tuple[Any, str]] = {}
    servers: dict[str, tuple[Any, str]] = {}
    warnings: list[str] = []
    for path in reversed(paths):
        refused = personal if os.path.basename(path) == PROJECT_FILE else ()
        try:
            own, named, programs, started = parse_config(
                decode(read_bytes(path), path), path, report, refused, warnings.append
            )
        except UsageError as error:
            report(error)
            continue
        settings |= own
        profiles |= named
        software |= {name: (table, path) for name, table in programs.items()}
        servers |= {name: (table, path) for name, table in started.items()}
    return Files(paths, settings, profiles, software, servers, tuple(warnings))


def parse_config(
    text: str, where: str, report: Report, refused: Collection[str], warn: Warn
) -> tuple[Layer, Mapping[str, Layer], Tables, Tables]:
    import tomllib  # noqa: PLC0415 - most calls find no file, and imports take time

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{where} is not TOML: {error}", hint='texts stand in quotes, as in budget = "2GiB"'
        ) from None
    profiles = {}
    # `profile = "NAME"` is a setting, [profile.NAME] are tables: one file cannot have both.
    if isinstance(document.get(PROFILE), dict):
        profiles = parse_profiles(document.pop(PROFILE), where, report, warn)
    software = document.pop(SOFTWARE, {})
    if not isinstance(software, dict):
        raise UsageError(f"{where}: {SOFTWARE!r} is not a table", hint="write [software.NAME]")
    servers: Tables = {}
    # Likewise `mcp = ["NAME"]` is a setting, [mcp] is a table.
    if isinstance(document.get(MCP), dict):
        servers = pop_servers(document[MCP], where)
        document |= {f"{MCP}.{name}": value for name, value in document.pop(MCP).items()}
    own = parse_table(
        document, tuple(BY_NAME), where, lines_of(text), report=report, warn=warn, refused=refused
    )
    return own, profiles, software, servers


def pop_servers(mcp: dict[str, Any], where: str) -> Tables:
    """[mcp.servers.NAME]. A project could start any program with one, in any later session."""
    servers = mcp.pop(SERVERS, {})
    if not isinstance(servers, dict):
        raise UsageError(f"{where}: 'mcp.servers' is not a table", hint="write [mcp.servers.NAME]")
    if servers and os.path.basename(where) == PROJECT_FILE:
        raise UsageError(
            f"{where}: a project may not add MCP servers: {', '.join(servers)}",
            hint="put [mcp.servers.NAME] into your own config.toml, or run ramherd mcp import",
        )
    return servers


def parse_profiles(
    tables: Mapping[str, Any], where: str, report: Report, warn: Warn
) -> dict[str, Layer]:
    profiles = {}
    for name, table in tables.items():
        place = f"{where}, profile {name!r}"
        if not isinstance(table, dict):
            raise UsageError(f"{place} is not a table", hint=f"write [profile.{name}]")
        profiles[name] = parse_table(
            table, tuple(PROFILE_KEYS), place, {}, report=report, warn=warn
        )
    return profiles


def parse_table(
    table: Mapping[str, Any], names: tuple[str, ...], where: str, lines: Mapping[str, int], *,
    report: Report, warn: Warn, refused: Collection[str] = (),
) -> Layer:  # fmt: skip
    found: dict[str, Setting] = {}
    for written, value in table.items():
        place = f"{where}, line {lines[written]}" if written in lines else where
        try:
            name = find_key(written, names, place)
            if name is None:
                warn(f"{place}: unknown key {written!r} is ignored")
                continue
            if name in refused:
                raise UsageError(
                    f"{place}: a project may not set {name}, which runs commands",
                    hint="put it into your own config.toml",
                )
            if name in found:
                raise UsageError(
                    f"{place}: {written!r} is another name of a key that is already set"
                )
            with_unit = add_unit(written, value)
            parsed = parse_at(BY_NAME[name], with_unit, f"{place}, key {written!r}")
            found[name] = Setting(parsed, place)
        except UsageError as error:
            report(error)
    return found


def find_key(written: str, names: tuple[str, ...], place: str) -> str | None:
    """The key that is meant; None if it is left out."""
    name = resolve(written)
    if name in names:
        return name
    known = [*names, *(alias for alias, key in ALIASES.items() if key in names)]
    if name in BY_NAME or (meant := find_near(written, known)):
        hint = nearest(written, known) if name in BY_NAME else f"did you mean {meant!r}?"
        raise UsageError(f"{place} has an unknown key {written!r}", hint=hint)
    return None


def find_near(written: str, known: list[str]) -> str:
    """The key of ours that is spelled similarly, also with capitals or dashes; or empty."""
    import difflib  # noqa: PLC0415 - only for errors: imports take time

    ours = variable_of(written).removeprefix(PREFIX).lower()
    close = difflib.get_close_matches(ours, known, 1, NEAR)
    close = close or difflib.get_close_matches(written, known, 1, NEAR)
    return close[0] if close else ""


def lines_of(text: str) -> dict[str, int]:
    """The line of each key outside of tables, which tomllib does not report."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            break
        name, equals, _value = line.partition("=")
        if equals:
            lines.setdefault(name.strip().strip("\"'"), number)
    return lines
