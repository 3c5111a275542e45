"""Commands of the user's service manager: systemctl, launchctl, crontab."""

import os
import shutil
import subprocess
from pathlib import Path

COMMAND_S = 30.0


def run_command(*argv: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    """A program that is missing or hangs counts as failed."""
    try:
        return subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(argv, 1, "", str(error))


def read_failure(done: "subprocess.CompletedProcess[str]") -> str:
    """The command and the last line that it printed; empty if it worked."""
    if not done.returncode:
        return ""
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"{' '.join(done.args)}: {said}"


def has_systemd() -> bool:
    """Whether this user has a systemd that answers."""
    if not shutil.which("systemctl"):
        return False
    return run_command("systemctl", "--user", "show-environment").returncode == 0


def unit_dir() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "systemd/user"


def quote_unit(word: str) -> str:
    """systemd expands % and $, and interprets quotes and backslashes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
