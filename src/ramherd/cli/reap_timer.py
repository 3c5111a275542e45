"""`ramherd reap --every TIME --install` and `--uninstall`."""

import argparse
import os
import sys

from ramherd.config.keys import BY_NAME, parse_at
from ramherd.config.paths import state_dir
from ramherd.core.errors import UsageError
from ramherd.core.units import format_duration, parse_duration
from ramherd.strays.timer import choose_kind, install, uninstall

# Where files are, and ramherd itself, must not depend on who calls.
CARRIED = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR", "PYTHONPATH")
LEAST_S = 60.0
NOTE = "reap-timer.json"


def change_timer(options: argparse.Namespace) -> int:
    if options.install == options.uninstall or (options.uninstall and options.every):
        raise UsageError(
            "a timer takes --every TIME --install, or --uninstall",
            hint="ramherd reap --every 15m --install",
        )
    if options.yes or options.suspect:
        raise UsageError("--yes and --suspect are for now, not for a timer", hint="leave them out")
    return take_back() if options.uninstall else put(options)


def put(options: argparse.Namespace) -> int:
    every_s = parse_every(options.every)
    argv = [sys.executable, "-m", "ramherd", "reap", "--yes"]
    if options.stray_grace is not None:
        parse_at(BY_NAME["stray_grace"], options.stray_grace, "--grace")
        argv += ["--grace", options.stray_grace]
    if options.all_users:
        argv.append("--all-users")
    env = {name: os.environ[name] for name in CARRIED if os.environ.get(name)}
    kind = choose_kind()
    found = install(kind, argv, env, every_s, state_dir() / NOTE)
    for path, text in found.files.items():
        print(f"wrote {path}:\n{text}")
    print(f"ramherd reap runs every {format_duration(every_s)} ({kind}); ", end="")
    print("to take it back: ramherd reap --uninstall")
    if kind == "systemd":
        print("while you are not logged in only after: loginctl enable-linger")
    return 0


def parse_every(text: str | None) -> float:
    if text is None:
        raise UsageError("--install needs --every TIME", hint="ramherd reap --every 15m --install")
    try:
        every_s = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"--every: {error}", hint=error.hint) from None
    if every_s < LEAST_S:
        raise UsageError(f"--every: {text} is below {format_duration(LEAST_S)}", hint="--every 15m")
    return every_s


def take_back() -> int:
    found = uninstall(state_dir() / NOTE)
    if found is None:
        print("no timer was installed")
        return 0
    for path in found.files:
        print(f"removed {'our lines of the ' if found.kind == 'cron' else ''}{path}")
    return 0
