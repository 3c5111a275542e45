"""`--every TIME --install` and `--uninstall`: a verb on a timer of this user."""

import argparse
import os
import sys
from collections.abc import Sequence

from ramherd.config.paths import state_dir
from ramherd.core.errors import UsageError
from ramherd.core.units import format_duration, parse_duration
from ramherd.strays.timer import TimerJob, choose_kind, install, uninstall

# With these, the timer's command finds the same files, and ramherd itself, in any environment.
TIMER_VARIABLES = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR", "PYTHONPATH")
LEAST_S = 60.0


def change_timer(options: argparse.Namespace, job: TimerJob, argv: Sequence[str]) -> int:
    """`argv` is the verb with its options."""
    if options.install == options.uninstall or (options.uninstall and options.every):
        raise UsageError(
            "a timer takes --every TIME --install, or --uninstall",
            hint=f"ramherd {job.verb} --every 15m --install",
        )
    return uninstall_timer(job) if options.uninstall else install_timer(options, job, argv)


def install_timer(options: argparse.Namespace, job: TimerJob, argv: Sequence[str]) -> int:
    if options.every is None:
        raise UsageError(
            "--install needs --every TIME", hint=f"ramherd {job.verb} --every 15m --install"
        )
    every_s = parse_every(options.every, LEAST_S, "--every 15m")
    env = {name: os.environ[name] for name in TIMER_VARIABLES if os.environ.get(name)}
    kind, words = choose_kind(job), [sys.executable, "-m", "ramherd", *argv]
    found = install(job, words, env, every_s, state_dir() / record_name(job), kind=kind)
    for path, text in found.files.items():
        print(f"wrote {path}:\n{text}")
    print(f"ramherd {job.verb} runs every {format_duration(every_s)} ({kind}); ", end="")
    print(f"to undo: ramherd {job.verb} --uninstall")
    if kind == "systemd":
        print("to run while you are logged out: loginctl enable-linger")
    return 0


def record_name(job: TimerJob) -> str:
    return f"{job.verb}-timer.json"


def parse_every(text: str, least_s: float, example: str) -> float:
    try:
        every_s = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"--every: {error}", hint=error.hint) from None
    if every_s < least_s:
        raise UsageError(f"--every: {text} is below {format_duration(least_s)}", hint=example)
    return every_s


def uninstall_timer(job: TimerJob) -> int:
    found = uninstall(job, state_dir() / record_name(job))
    if found is None:
        print("no timer was installed")
        return 0
    for path in found.files:
        print(f"removed {'our lines of the ' if found.kind == 'cron' else ''}{path}")
    return 0
