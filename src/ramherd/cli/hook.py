"""`ramherd hook install|uninstall|status`: makes Claude Code's subagents wait for memory."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from ramherd.config.keys import BY_NAME
from ramherd.config.load import add_flag, load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import RamherdError
from ramherd.core.units import format_duration
from ramherd.hook.claude_settings import (
    EVENTS,
    hook_command,
    installed_events,
    pre_tool_timeout_s,
)
from ramherd.hook.install import SettingsFile
from ramherd.hook.sessions_table import render_ended, render_sessions, sessions_as_json
from ramherd.hook.shown_messages import CHECK
from ramherd.store.subagent_slots import read_ended, read_sessions
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.ids import new_id
from ramherd.system.user_files import read_cwd

EPILOG = """\
examples:
  ramherd hook install claude             for all projects: in ~/.claude
  ramherd hook install claude --project   for this one: in ./.claude
  ramherd hook status                     sessions, and why subagents wait

Other hooks are kept. `uninstall` restores the original file; if the file has
changed since, only ramherd's hooks are removed.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    verbs = parser.add_subparsers(
        prog="ramherd hook", title="what to do", required=True, metavar="WHAT"
    )
    whats = {"install": "put it into Claude Code's settings", "uninstall": "take it out again"}
    for what, help_ in whats.items():
        one = verbs.add_parser(what, help=help_)
        one.add_argument("agent", choices=["claude"], help="agent whose settings are changed")
        one.add_argument("--project", action="store_true", help="settings of this project")
        one.add_argument("--json", action="store_true", help="one JSON object on stdout")
        one.set_defaults(verb=install if what == "install" else uninstall)
        if what == "install":
            add_flag(one, BY_NAME["hook_wait"])
    one = verbs.add_parser("status", help="where it is installed, and which subagents wait")
    one.add_argument("--json", action="store_true", help="as one JSON object")
    one.set_defaults(verb=status)


def install(options: argparse.Namespace) -> int:
    wait_s = load_config(options)["hook_wait"]
    settings = open_settings(is_project=options.project)
    check()
    is_changed = settings.install(wait_s)
    if options.json:
        print(json.dumps({"path": str(settings.shown), "installed": True, "changed": is_changed}))
        return 0
    if not is_changed:
        print(f"the hook is already installed in {settings.shown}")
        return 0
    print(f"the hook is installed in {settings.shown}; new sessions use it")
    print(f"a subagent waits up to {format_duration(wait_s)} for memory (hook_wait)")
    return 0


def uninstall(options: argparse.Namespace) -> int:
    settings = open_settings(is_project=options.project)
    is_changed = settings.uninstall()
    if options.json:
        print(json.dumps({"path": str(settings.shown), "installed": False, "changed": is_changed}))
        return 0
    if not is_changed:
        print(f"no hook is installed in {settings.shown}")
        return 0
    print(f"the hook was removed from {settings.shown}")
    return 0


def status(options: argparse.Namespace) -> int:
    path, now_s = str(runtime_dir() / "ledger.db"), read_boot_s()
    # The hook reports wrong settings.
    wait_s = load_config(report=lambda _error: None)["hook_wait"]
    files = [open_settings(is_project=is_project) for is_project in (False, True)]
    states = [(str(one.shown), describe(one, wait_s)) for one in files]
    sessions, ended = read_sessions(path), read_ended(path)
    if options.json:
        about = {
            "settings": [{"path": shown, "state": state} for shown, state in states],
            "sessions": sessions_as_json(sessions, now_s),
            "ended": [one._asdict() for one in ended],
        }
        print(json.dumps(about))
        return 0
    for shown, state in states:
        print(f"{shown}: {state}")
    for line in (*render_sessions(sessions, now_s), *render_ended(ended)):
        print(line)
    return 0


def describe(settings: SettingsFile, wait_s: float) -> str:
    found = installed_events(settings.text(), str(settings.shown))
    if not found:
        return "not installed"
    missing = [event for event in EVENTS if event not in found]
    if missing:
        return f"installed in part, without {', '.join(missing)}: install it again"
    here = os.path.dirname(sys.executable)
    if not all(command_dir(command) == here for ours in found.values() for command in ours):
        return "installed by another ramherd: install it again to use this one"
    if not all(is_long_enough(command, wait_s) for command in found["PreToolUse"]):
        return "installed with a time that is too short for hook_wait: install it again"
    return "installed"


def is_long_enough(command: str, wait_s: float) -> bool:
    """Checks the timeout of the hook, as `hook_command` wrote it."""
    words = shlex.split(command)
    seconds = words[words.index("ramherd.hook") + 1 :][:1]
    return any(one.isdecimal() and int(one) >= pre_tool_timeout_s(wait_s) for one in seconds)


def command_dir(command: str) -> str:
    """python and python3 in one directory are the same."""
    return os.path.dirname(shlex.split(command)[0])


def open_settings(*, is_project: bool) -> SettingsFile:
    if is_project:
        return SettingsFile(Path(read_cwd()) / ".claude/settings.json", state_dir())
    home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    return SettingsFile(Path(home) / "settings.json", state_dir())


def check() -> None:
    """Runs the hook as Claude does: from a shell, and from any directory."""
    env = {key: value for key, value in os.environ.items() if key != "RAMHERD_RUN"}
    command = hook_command(60).removesuffix(" || true")
    event = json.dumps({"hook_event_name": CHECK, "session_id": new_id()})
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=event, text=True, capture_output=True, check=False,
        env=env, cwd="/",
    )  # fmt: skip
    if done.returncode or "does not work" in done.stdout:
        said = done.stdout or done.stderr.strip().rpartition("\n")[2]
        raise RamherdError(
            f"the hook does not work, so it was not installed: {said}",
            hint=f"try it: echo '{{}}' | {sys.executable} -P -m ramherd.hook",
        )
