"""The service as a systemd user unit or a launchd agent: one file, which starts it at once and with
each session of the user.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from ramherd.act.user_manager import (
    has_systemd,
    quote_unit,
    read_failure,
    run_command,
    unit_dir,
)
from ramherd.core.errors import NoService, UsageError

LABEL = "dev.ramherd.up"
UNIT = "ramherd"
# The service and its clients have to use the same directories. PATH is not among these variables:
# jobs get the PATH of the command that submits them.
PASSED = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "RAMHERD_RUNTIME_DIR")
# A first start on a busy machine; the API has libraries to import.
ANSWERS_WITHIN_S = 30.0
LOOK_EVERY_S = 0.1


class InstalledUnit(NamedTuple):
    path: Path
    # The commands that show its output, and that uninstall it.
    log: str
    undo: str

    def as_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "log": self.log, "undo": self.undo}


def install(flags: Sequence[str], is_answering: Callable[[], bool]) -> InstalledUnit:
    """Writes the unit and starts or restarts it. Writes nothing if nothing could start the unit, or
    if a service is running that was started in another way.
    """
    if not is_mac() and not has_systemd():
        raise NoService(
            "systemd does not answer to this user, so that nothing was installed",
            hint="ramherd up -d starts the service in the background",
        )
    is_ours = is_active()
    if not is_ours and is_answering():
        raise UsageError(
            "a service is running that the service manager did not start",
            hint="end it first: kill its pid, which ramherd up shows",
        )
    path = write_file(flags)
    start(path, is_active=is_ours)
    found = describe(path)
    await_answer(is_answering, found)
    return found


def uninstall() -> Path:
    """Stops the service and removes its file."""
    path = unit_path()
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint="ramherd up --install writes it")
    if is_mac():
        run_command("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}")
    else:
        run_command("systemctl", "--user", "disable", "--now", UNIT)
    path.unlink()
    if not is_mac():
        run_command("systemctl", "--user", "daemon-reload")
    return path


def write_file(flags: Sequence[str]) -> Path:
    path, text = make_file(flags, os.environ)
    if path.exists() and "ramherd" not in path.read_text():
        raise UsageError(f"{path} was not written by ramherd", hint=f"look at it: cat {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return path


def is_active() -> bool:
    """Whether the running service is that of the unit."""
    if is_mac():
        return not run_command("launchctl", "print", f"gui/{os.getuid()}/{LABEL}").returncode
    return not run_command("systemctl", "--user", "is-active", "--quiet", UNIT).returncode


def start(path: Path, *, is_active: bool) -> None:
    """With the current flags: a running unit is restarted, and its jobs go on."""
    if is_mac():
        if is_active:
            run_command("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}")
        commands = [["launchctl", "bootstrap", f"gui/{os.getuid()}", str(path)]]
    else:
        commands = [["daemon-reload"], ["enable", UNIT], ["restart", UNIT]]
        commands = [["systemctl", "--user", *words] for words in commands]
    for argv in commands:
        if failure := read_failure(run_command(*argv)):
            raise NoService(
                f"the service is installed and does not start: {failure}",
                hint="ramherd up --uninstall takes it back",
            )


def await_answer(is_answering: Callable[[], bool], found: InstalledUnit) -> None:
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while not is_answering():
        if time.monotonic() > deadline:
            raise NoService(
                f"the service is installed and has not answered for {ANSWERS_WITHIN_S:.0f} s",
                hint=f"see why: {found.log}",
            )
        time.sleep(LOOK_EVERY_S)


def describe(path: Path) -> InstalledUnit:
    log = f"log show --predicate 'process == \"{LABEL}\"'" if is_mac() else (
        f"journalctl --user --unit {UNIT}"
    )  # fmt: skip
    return InstalledUnit(path, log, "ramherd up --uninstall")


def is_mac() -> bool:
    return sys.platform == "darwin"


def unit_path() -> Path:
    if is_mac():
        return Path.home() / f"Library/LaunchAgents/{LABEL}.plist"
    return unit_dir() / f"{UNIT}.service"


def make_file(flags: Sequence[str], environ: Mapping[str, str]) -> tuple[Path, str]:
    command = [sys.executable, "-P", "-m", "ramherd", "up", *flags]
    env = {name: environ[name] for name in PASSED if environ.get(name)}
    render = render_plist if is_mac() else render_unit
    return unit_path(), render(command, env)


def render_unit(command: Sequence[str], env: Mapping[str, str]) -> str:
    """KillMode=process: when the service dies its runs go on, and the next start adopts them. When
    it is stopped it ends them itself. Delegate: lets the service set their limits.
    """
    lines = [f"Environment={quote_unit(f'{name}={value}')}" for name, value in env.items()]
    return "\n".join(
        [
            "[Unit]",
            "Description=ramherd: as many coding agents as the memory holds",
            "",
            "[Service]",
            f"ExecStart={' '.join(map(quote_unit, command))}",
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
