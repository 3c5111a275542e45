"""`ramherd exec -- COMMAND`: runs one program on this terminal, in a pen, as if it ran bare."""

import argparse
import json
import os
import resource
import sys
from typing import TYPE_CHECKING

from ramherd.act.systemd_scope import enter_scope
from ramherd.cli.main import print_warnings
from ramherd.config.keys import BY_NAME
from ramherd.config.load import Config, add_flags, load_config, make_policy
from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError
from ramherd.core.model import Job
from ramherd.core.units import MIB
from ramherd.exec.session import run_session
from ramherd.system.file_limit import check_file_limit
from ramherd.system.ids import new_id
from ramherd.system.user_files import read_cwd

if TYPE_CHECKING:
    from ramherd.exec.shell_function import ShellFile

EPILOG = """\
examples:
  ramherd exec -- claude
  ramherd exec --memory-limit 4GiB -- npm run dev
  ramherd exec install claude     `claude` always runs within a memory limit
  ramherd exec uninstall claude   undo it

The window size, Ctrl-C, Ctrl-Z and pipes work as without ramherd. When the
program ends or the window closes, every process that it started is ended.

settings: also in ramherd.toml and in RAMHERD_* variables; see `ramherd config`
exit codes: the program's (128+N for signal N), 127 not found, 126 not
executable, 2 usage, 3 this machine cannot, 130 interrupted while waiting for
memory
"""
# For a job without `memory`, `run` expects the size of earlier runs of its kind. A session is never
# held at a grant, so it asks for the size of agents at work (docs/agents.md: 215 MB and a tool or
# two).
MEMORY_BYTES = 512 * MIB
# For the store, the ledger and the files of the pen.
LEAST_DESCRIPTORS = 20
# The settings that make sense for one program on a terminal, and their meaning for it.
SETTINGS = {
    "budget": "the most memory it may ask for",
    "budget_share": BY_NAME["budget_share"].help,
    "memory": "memory it needs; it waits until this much is free (512MiB)",
    "memory_limit": "memory it may never exceed",
    "pids_limit": "processes in its pen (cgroup pens)",
    "profile": "the [profile.NAME] to take memory and memory_limit from",
    "pen": "how its memory is limited: auto, cgroup2, cgroup1, polling",
    "no_wait": BY_NAME["no_wait"].help,
    "grace": BY_NAME["grace"].help,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.usage = (
        "ramherd exec [options] -- COMMAND [ARGUMENT ...]\n"
        "       ramherd exec install|uninstall AGENT [--shell bash|zsh|fish] [--json]"
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    shells = "the shell, for install and uninstall: bash, zsh or fish (default: $SHELL)"
    parser.add_argument("--shell", choices=("bash", "zsh", "fish"), help=shells)
    what = "for install and uninstall: one JSON object on stdout"
    parser.add_argument("--json", action="store_true", help=what)
    add_session_flags(parser)
    parser.set_defaults(verb=exec_)


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, [BY_NAME[name]._replace(help=text) for name, text in SETTINGS.items()])


def exec_(options: argparse.Namespace) -> int:
    argv = options.command
    if options.words or options.json or options.shell is not None:
        return change_shell(options)
    if not argv or not argv[0]:
        raise UsageError("no command after --", hint="ramherd exec -- claude")
    config = enter_session(options)
    if config["memory_limit"] is not None:
        check_agent_limit(argv[0], config["memory_limit"])
    job = Job(
        id=new_id(),
        herd=new_id(),
        name=(os.path.basename(argv[0]) or argv[0]).encode(errors="backslashreplace").decode(),
        seq=0,
        argv=tuple(argv),
        cwd=read_cwd(),
        memory_bytes=config["memory"] or MEMORY_BYTES,
        memory_limit_bytes=config["memory_limit"],
    )
    code = run_session(job, config["pen"], make_policy(config))
    # Nothing is buffered, and tearing down the interpreter takes 5 ms.
    os._exit(code)


def check_agent_limit(program: str, limit_bytes: int) -> None:
    """An agent that cannot run within its limit is not started."""
    name = os.path.basename(program)
    if name in AGENTS:
        from ramherd.agents import find_agent  # noqa: PLC0415 - seldom, and imports take time
        from ramherd.agents.heap import check_limit  # noqa: PLC0415

        check_limit(find_agent(name), limit_bytes, "ramherd exec --memory-limit {} -- " + name)


def change_shell(options: argparse.Namespace) -> int:
    """`ramherd exec install AGENT`: adds a function to the user's shell; `uninstall` removes it."""
    from ramherd.exec import shell_function  # noqa: PLC0415 - seldom

    verb, *names = options.words or [""]
    if options.command is not None or verb not in ("install", "uninstall"):
        from ramherd.cli.mistakes import missing_dashes  # noqa: PLC0415 - only for errors

        raise missing_dashes(options.words)
    if len(names) != 1 or names[0] not in shell_function.PROGRAMS:
        known = ", ".join(shell_function.PROGRAMS)
        raise UsageError(f"{verb} takes one agent: {known}", hint=f"ramherd exec {verb} claude")
    name, file = names[0], shell_function.find_shell_file(options.shell)
    is_installing = verb == "install"
    change = shell_function.install if is_installing else shell_function.uninstall
    is_changed = change(file, name)
    has_alias = shell_function.has_alias(file, name)
    if options.json:
        told = {"file": str(file.path), "shell": file.shell, "changed": is_changed}
        print(json.dumps({**told, "installed": is_installing, "alias": has_alias}))
        return 0
    lines = render_installed if is_installing else render_uninstalled
    print("\n".join(lines(name, file, is_changed=is_changed)))
    if is_installing and has_alias:
        print(f"ramherd: an alias in {file.path} hides it: unalias {name}", file=sys.stderr)
    return 0


def render_installed(name: str, file: "ShellFile", *, is_changed: bool) -> list[str]:
    if not is_changed:
        return [f"the function {name} is in {file.path} already"]
    return [
        f"wrote the function {name} to {file.path}: it calls ramherd exec -- {name}",
        f"next: open a new terminal, or type: {file.load}",
        f"to undo it: ramherd exec uninstall {name}",
    ]


def render_uninstalled(name: str, file: "ShellFile", *, is_changed: bool) -> list[str]:
    if not is_changed:
        return [f"there is no function {name} of ramherd in {file.path}"]
    forget = f"functions -e {name}" if file.shell == "fish" else f"unset -f {name}"
    return [
        f"removed the function {name} from {file.path}",
        f"terminals that are open have it until you type: {forget}",
    ]


def enter_session(options: argparse.Namespace) -> Config:
    """The settings, in the scope in which the session will run."""
    check_file_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0], LEAST_DESCRIPTORS)
    config = load_config(options)
    print_warnings(config.warnings)
    why_not = enter_scope(config["pen"])
    if why_not and (config["memory_limit"] is not None or config["pen"] != "auto"):
        print(f"ramherd: no systemd scope: {why_not}", file=sys.stderr)
    return config
