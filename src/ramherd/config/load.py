"""Settings: defaults < the user's file < the project's file < profile < environment < flags.

The keys are in `config/keys.py`, files in `config/settings_files.py`; callers decide how to use a
value.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ramherd.config.keys import (
    ALIASES,
    BY_NAME,
    KEYS,
    PEN,
    PREFIX,
    Key,
    Layer,
    Report,
    Setting,
    add_unit,
    flag_of,
    parse_at,
    refuse,
    resolve,
    variable_of,
)
from ramherd.config.settings_files import read_files
from ramherd.core.errors import UsageError
from ramherd.core.policies import Policy
from ramherd.core.values import SWITCH, find_near, nearest
from ramherd.system.user_files import read_cwd

if TYPE_CHECKING:
    import argparse

DEFAULT = "default"
# Variables of ours that are not settings: those of a run, the runtime directory, those of tests.
NO_SETTINGS = (
    "RAMHERD_RUN", "RAMHERD_JOB", "RAMHERD_HERD", "RAMHERD_ATTEMPT", "RAMHERD_RESUMED",
    "RAMHERD_RUNTIME_DIR", "RAMHERD_TRACES", "RAMHERD_ALERT", "RAMHERD_NAME", "RAMHERD_STATE",
    "RAMHERD_END", "RAMHERD_EXIT_CODE", "RAMHERD_KEEP", "RAMHERD_BRANCH", "RAMHERD_WORKTREE_DIR",
    "RAMHERD_MCP_TOKEN",
)  # fmt: skip
OF_TESTS = "RAMHERD_TEST"


class Config:
    """A profile overrides `below` (defaults, files) and is overridden by `above`. `software` are
    the [software.NAME] tables as written, with the file of each; `servers` those of
    [mcp.servers.NAME].
    """

    def __init__(
        self, below: Layer, above: Layer, profiles: Mapping[str, Layer], *,
        profile: str | None = None, files: tuple[str, ...] = (), warnings: tuple[str, ...] = (),
        software: Mapping[str, tuple[Any, str]] | None = None,
        servers: Mapping[str, tuple[Any, str]] | None = None,
    ) -> None:  # fmt: skip
        self.below, self.above, self.profiles, self.profile = below, above, profiles, profile
        self.files, self.warnings = files, warnings
        self.software, self.servers = software or {}, servers or {}
        chosen: Layer = profiles[profile] if profile is not None else {}
        self.settings: Layer = {**below, **chosen, **above}

    def __getitem__(self, name: str) -> Any:
        return self.settings[name].value

    def given(self, name: str) -> Any:
        """The value, or None if it is the default."""
        setting = self.settings[name]
        return None if setting.source == DEFAULT else setting.value

    def with_profile(self, name: str) -> "Config":
        return Config(
            self.below, self.above, self.profiles, profile=name, files=self.files,
            warnings=self.warnings, software=self.software, servers=self.servers,
        )  # fmt: skip


def add_flags(parser: "argparse.ArgumentParser", keys: Iterable[Key] = KEYS) -> None:
    """Values stay text: `load_config` parses them, like those of files and variables."""
    import argparse  # noqa: PLC0415 - 15 ms that `exec` and the hook do not need

    names = set()
    for key in keys:
        names.add(key.name)
        add_flag(parser, key)
    for alias, name in ALIASES.items():
        if name in names:
            parser.add_argument(
                f"--{alias}",
                dest=name,
                metavar="",
                help=argparse.SUPPRESS,
                type=partial(add_unit, alias),
            )


# Short flags, as in `make` and GNU parallel.
SHORT = {"max_parallel": ("-j",)}


def add_flag(parser: "argparse.ArgumentParser", key: Key) -> None:
    known = "" if key.default in (None, False) or key.kind is PEN else f" ({key.show(key.default)})"
    if key.kind is not SWITCH:
        parser.add_argument(
            *SHORT.get(key.name, ()),
            key.flag,
            dest=key.name,
            metavar=key.kind.metavar,
            help=key.help + known,
        )
        return
    add = parser.add_argument
    add(key.flag, dest=key.name, action="store_const", const=True, help=key.help)
    add(
        opposite_of(key),
        dest=key.name,
        action="store_const",
        const=False,
        help=f"the opposite of {key.flag}",
    )


def opposite_of(key: Key) -> str:
    """The flag that turns a switch off."""
    is_negative = key.name.startswith("no_")
    return flag_of(key.name.removeprefix("no_") if is_negative else f"no_{key.name}")


def given_flags(options: "argparse.Namespace", keys: Iterable[Key]) -> list[str]:
    """The settings of a call as words for another call."""
    words: list[str] = []
    for key in keys:
        value = getattr(options, key.name, None)
        if isinstance(value, bool):
            words.append(key.flag if value else opposite_of(key))
        elif value is not None:
            words.append(f"{key.flag}={value}")
    return words


def from_defaults(other: Mapping[str, Any]) -> Layer:
    """`other` are a verb's own defaults."""
    return {key.name: Setting(other.get(key.name, key.default), DEFAULT) for key in KEYS}


def from_environment(
    environ: Mapping[str, str], report: Report = refuse
) -> tuple[Layer, list[str]]:
    """The settings, and a line for each variable that looks like a misspelt setting. An empty
    variable counts as not set.
    """
    named = {key.variable: key.name for key in KEYS}
    named |= {variable_of(name): name for name in ALIASES}
    found: dict[str, Setting] = {}
    warnings = []
    for variable, text in environ.items():
        if not text or not is_setting(variable):
            continue
        if variable not in named:
            warnings += explain_unknown(variable, named)
            continue
        try:
            name = resolve(named[variable])
            if name not in found or variable == BY_NAME[name].variable:
                value = add_unit(named[variable], text)
                found[name] = Setting(parse_at(BY_NAME[name], value, variable), variable)
        except UsageError as error:
            report(error)
    return found, warnings


def explain_unknown(variable: str, known: Iterable[str]) -> list[str]:
    """A misspelt setting is named. Any other variable may be a user's own."""
    names = [name.removeprefix(PREFIX) for name in known]
    near = find_near(variable.removeprefix(PREFIX), names)
    return [f"unknown variable {variable}: did you mean {PREFIX + near!r}?"] if near else []


def is_setting(variable: str) -> bool:
    if variable in NO_SETTINGS or variable.startswith(OF_TESTS):
        return False
    return variable.startswith(PREFIX)


def from_flags(options: "argparse.Namespace") -> Layer:
    given = {name: value for name, value in vars(options).items() if value is not None}
    return {
        key.name: Setting(parse_at(key, given[key.name], key.flag), key.flag)
        for key in KEYS
        if key.name in given
    }


def load_config(
    options: "argparse.Namespace | None" = None, *, defaults: Mapping[str, Any] | None = None,
    cwd: str = "", report: Report = refuse, personal: Collection[str] = (),
) -> Config:  # fmt: skip
    """All settings for this call. A wrong setting is an error before anything starts, unless
    `report` does not raise: then it is left out. `personal` keys are wrong in a project's file.
    """
    files = read_files(cwd or find_cwd(), os.environ, report, personal)
    environment, warnings = from_environment(os.environ, report)
    below = {**from_defaults(defaults or {}), **files.settings}
    above = {**environment, **from_flags(options)} if options is not None else environment
    config = Config(
        below, above, files.profiles, files=files.paths, warnings=(*files.warnings, *warnings),
        software=files.software, servers=files.servers,
    )  # fmt: skip
    try:
        return choose_profile(config)
    except UsageError as error:
        report(error)
    return config


def find_cwd() -> str:
    """Where the search for a project's file starts. A removed directory has no such file, and most
    verbs do not need one.
    """
    try:
        return read_cwd()
    except UsageError:
        return "/"


def choose_profile(config: Config) -> Config:
    name, source = config["profile"], config.settings["profile"].source
    if name is None:
        return config
    if name not in config.profiles:
        raise UsageError(f"{source}: no profile is named {name!r}", hint=hint(config, name))
    return config.with_profile(name)


def hint(config: Config, name: str) -> str:
    if config.profiles:
        return nearest(name, config.profiles)
    return f"add [profile.{name}] to ramherd.toml"


def make_policy(config: Config) -> Policy:
    """The settings that decisions use, for `run`, `exec`, the hook and the service."""
    return Policy(
        budget_cap_bytes=config["budget"],
        budget_share=config["budget_share"],
        no_wait=config["no_wait"],
        grace_s=config["grace"],
        pids_limit=config["pids_limit"],
        stall_after_s=config["stall_after"],
        log_head_bytes=config["log_head"],
        log_ring_bytes=config["log_ring"],
        log_total_bytes=config["log_total"],
        memory_history_bytes=config["memory_history"],
    )
