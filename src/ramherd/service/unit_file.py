"""The service as a unit of systemd or an agent of launchd, of the user: one file."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ramherd.core.errors import UsageError

LABEL = "dev.ramherd.up"
# Where the service keeps things has to be the same for it and for who asks it.
PASSED = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR", "PATH")


def install(flags: Sequence[str]) -> list[str]:
    path, text = make_file(flags, os.environ)
    if path.exists() and path.read_text() != text and "ramherd" not in path.read_text():
        raise UsageError(f"{path} is there and not ours", hint=f"look at it: cat {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return [f"wrote {path}", *told(path)]


def uninstall() -> list[str]:
    path = unit_path()
    if not path.exists():
        raise UsageError(f"{path} is not there", hint="ramherd up --install writes it")
    path.unlink()
    if is_mac():
        return [f"removed {path}", f"end what still runs: launchctl bootout gui/$UID/{LABEL}"]
    return [f"removed {path}", "end what still runs: systemctl --user disable --now ramherd"]


def told(path: Path) -> list[str]:
    if is_mac():
        return [
            f"start it: launchctl bootstrap gui/$UID {shlex.quote(str(path))}",
            f"undo: launchctl bootout gui/$UID/{LABEL}; ramherd up --uninstall",
        ]
    return [
        "start it: systemctl --user daemon-reload && systemctl --user enable --now ramherd",
        "undo: systemctl --user disable --now ramherd; ramherd up --uninstall",
        "also while you are not logged in: loginctl enable-linger",
    ]


def is_mac() -> bool:
    return sys.platform == "darwin"


def unit_path() -> Path:
    if is_mac():
        return Path.home() / f"Library/LaunchAgents/{LABEL}.plist"
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "systemd/user/ramherd.service"


def make_file(flags: Sequence[str], environ: Mapping[str, str]) -> tuple[Path, str]:
    command = [sys.executable, "-m", "ramherd", "up", *flags]
    env = {name: environ[name] for name in PASSED if environ.get(name)}
    render = render_plist if is_mac() else render_unit
    return unit_path(), render(command, env)


def render_unit(command: Sequence[str], env: Mapping[str, str]) -> str:
    """KillMode=process: when the service dies its runs go on, and the next start adopts them. When
    it is stopped it ends them itself. Delegate: their limits are ours to set.
    """
    lines = [f"Environment={quoted(f'{name}={value}')}" for name, value in env.items()]
    return "\n".join(
        [
            "[Unit]",
            "Description=ramherd: as many coding agents as the memory holds",
            "",
            "[Service]",
            f"ExecStart={' '.join(map(quoted, command))}",
            "ExecReload=/bin/kill -HUP $MAINPID",
            *lines,
            "Restart=on-failure",
            "RestartSec=1",
            "KillMode=process",
            "Delegate=yes",
            "TimeoutStopSec=60",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def quoted(word: str) -> str:
    """As systemd reads it: % and $ are its own."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("%", "%%").replace("$", "$$") + '"'


def render_plist(command: Sequence[str], env: Mapping[str, str]) -> str:
    words = "".join(f"<string>{escape(word)}</string>" for word in command)
    pairs = "".join(
        f"<key>{escape(name)}</key><string>{escape(value)}</string>" for name, value in env.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" '
        '"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'
        '<plist version="1.0"><dict>\n'
        f"<key>Label</key><string>{LABEL}</string>\n"
        f"<key>ProgramArguments</key><array>{words}</array>\n"
        f"<key>EnvironmentVariables</key><dict>{pairs}</dict>\n"
        "<key>RunAtLoad</key><true/>\n"
        "<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n"
        "<key>AbandonProcessGroup</key><true/>\n"
        "</dict></plist>\n"
    )
