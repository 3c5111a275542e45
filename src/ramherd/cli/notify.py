"""`--notify`: a desktop notice when a herd has ended, or the bell of the terminal.

It never fails a run: if neither is possible, nothing happens.
"""

import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

from ramherd.core.units import format_duration
from ramherd.show.summary import render_counts
from ramherd.system.executables import find_executable

NOTICE_S = 5.0
# If one of these is set, there is a desktop that can show a notice.
DESKTOPS = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY")


def notify(summary: dict[str, Any]) -> None:
    command = choose_command(render_notice(summary))
    if command is None or not show_notice(command):
        ring_bell()


def render_notice(summary: dict[str, Any]) -> str:
    return f"{render_counts(summary)} in {format_duration(summary['wall_s'])}"


def choose_command(text: str) -> list[str] | None:
    if sys.platform == "darwin":
        return ["osascript", "-e", f'display notification "{text}" with title "ramherd"']
    if not any(os.environ.get(name) for name in DESKTOPS):
        return None
    program = find_executable("notify-send", os.environ.get("PATH", os.defpath))
    return None if program is None else [program, "--app-name=ramherd", "ramherd", text]


def show_notice(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=NOTICE_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def ring_bell() -> None:
    """On the terminal that we print on, or were started on."""
    with suppress(OSError):
        for out in (2, 1):
            if os.isatty(out):
                os.write(out, b"\a")
                return
        fd = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            os.write(fd, b"\a")
        finally:
            os.close(fd)
