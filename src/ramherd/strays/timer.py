"""Runs `ramherd reap` on a timer (systemd, launchd or cron, whichever is available), and undoes it.

All written files, and the directories made for them, are recorded in a file of the state directory.
"""

import json
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ramherd.act.user_manager import (
    has_systemd,
    quote_unit,
    read_failure,
    run_command,
    unit_dir,
)
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import format_duration

NAME = "ramherd-reap"
LABEL = "dev.ramherd.reap"
BEGIN, END = "# ramherd reap: begin", "# ramherd reap: end"
DAY_MIN = 24 * 60

SERVICE = """\
[Unit]
Description=End what coding agents left behind

[Service]
Type=oneshot
Nice=10
{environment}ExecStart={command}
"""
TIMER = """\
[Unit]
Description=End what coding agents left behind, every {every}

[Timer]
OnActiveSec=1min
OnUnitActiveSec={seconds}s
AccuracySec=30s

[Install]
WantedBy=timers.target
"""


class NoTimer(RamherdError):
    """This machine has no service that runs a program periodically."""

    exit_code = 3


@dataclass
class Installed:
    """The changes to undo."""

    kind: str
    files: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    had_crontab: bool = True


def choose_kind() -> str:
    """The user's service manager, if it answers; otherwise cron."""
    if sys.platform == "darwin":
        return "launchd"
    if has_systemd():
        return "systemd"
    if shutil.which("crontab"):
        return "cron"
    raise NoTimer(
        "no timer here: systemd does not answer to this user, and there is no crontab",
        hint="apt-get install cron, or call `ramherd reap --yes` from a timer of your own",
    )


def install(
    kind: str, argv: Sequence[str], env: Mapping[str, str], every_s: float, record: Path
) -> Installed:
    """An older timer is removed first."""
    if record.exists():
        uninstall(record)
    if kind == "cron":
        found = install_cron(make_cron_lines(argv, env, every_s))
    elif kind == "systemd":
        found = write_files(kind, unit_dir(), make_units(argv, env, every_s))
    else:
        agents = Path.home() / "Library/LaunchAgents"
        found = write_files(kind, agents, {f"{LABEL}.plist": make_plist(argv, env, every_s)})
    # Recorded before the start, so that any later failure can be undone.
    record.write_text(json.dumps(asdict(found)))
    start(found)
    return found


def uninstall(record: Path) -> Installed | None:
    """The undone changes; None if nothing was installed."""
    try:
        found = Installed(**json.loads(record.read_text()))
    except FileNotFoundError:
        return None
    stop(found)
    for path in found.files:
        if found.kind != "cron":
            Path(path).unlink(missing_ok=True)
    if found.kind == "systemd":
        run_command("systemctl", "--user", "daemon-reload")
    for path in reversed(found.made):
        try:
            os.rmdir(path)
        except OSError:  # it has another file now
            break
    record.unlink()
    return found


def write_files(kind: str, directory: Path, texts: Mapping[str, str]) -> Installed:
    found = Installed(kind)
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    found.made = [str(path) for path in reversed(missing)]
    for name, text in texts.items():
        path = directory / name
        path.write_text(text)
        found.files[str(path)] = text
    return found


def install_cron(block: str) -> Installed:
    old = read_crontab()
    write_crontab(add_block(old or "", block))
    return Installed("cron", {"crontab": block}, had_crontab=old is not None)


def read_crontab() -> str | None:
    done = run_command("crontab", "-l")
    return done.stdout if done.returncode == 0 else None


def write_crontab(text: str) -> None:
    check(run_command("crontab", "-", text=text))


def start(found: Installed) -> None:
    if found.kind == "systemd":
        check(run_command("systemctl", "--user", "daemon-reload"))
        check(run_command("systemctl", "--user", "enable", "--now", f"{NAME}.timer"))
    elif found.kind == "launchd":
        (path,) = found.files
        check(run_command("launchctl", "bootstrap", f"gui/{os.getuid()}", path))


def stop(found: Installed) -> None:
    """A timer that was stopped by hand, or never started, does not keep its files."""
    if found.kind == "systemd":
        run_command("systemctl", "--user", "disable", "--now", f"{NAME}.timer")
    elif found.kind == "launchd":
        run_command("launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}")
    else:
        rest = remove_block(read_crontab() or "")
        if rest or found.had_crontab:
            write_crontab(rest)
        else:
            run_command("crontab", "-r")


def check(done: "subprocess.CompletedProcess[str]") -> None:
    if failure := read_failure(done):
        raise NoTimer(
            f"cannot set the timer: {failure}",
            hint="ramherd reap --uninstall takes back what was written",
        )


def make_units(argv: Sequence[str], env: Mapping[str, str], every_s: float) -> dict[str, str]:
    """File name -> text of the service and of its timer."""
    environment = "".join(f"Environment={quote_unit(f'{k}={v}')}\n" for k, v in env.items())
    command = " ".join(quote_unit(word) for word in argv)
    service = SERVICE.format(environment=environment, command=command)
    timer = TIMER.format(every=format_duration(every_s), seconds=round(every_s))
    return {f"{NAME}.service": service, f"{NAME}.timer": timer}


def make_plist(argv: Sequence[str], env: Mapping[str, str], every_s: float) -> str:
    job = {
        "Label": LABEL,
        "ProgramArguments": list(argv),
        "EnvironmentVariables": dict(env),
        "StartInterval": round(every_s),
        "ProcessType": "Background",
    }
    return plistlib.dumps(job).decode()


def make_cron_lines(argv: Sequence[str], env: Mapping[str, str], every_s: float) -> str:
    """`*/90` would fire every hour, so the due minutes are listed for each hour."""
    words = [f"{key}={shlex.quote(value)}" for key, value in env.items()]
    words += [shlex.quote(word) for word in argv]
    # cron ends the command at a %.
    command = " ".join(words).replace("%", "\\%")
    lines = [f"{when} {command}" for when in cron_times(every_s)]
    return "\n".join([BEGIN, *lines, END]) + "\n"


def cron_times(every_s: float) -> list[str]:
    every, rest = divmod(round(every_s), 60)
    if rest or every < 1 or DAY_MIN % every:
        raise UsageError(
            f"cron cannot run every {format_duration(every_s)}: it does not divide a day",
            hint=f"--every {nearest_divisor(every_s / 60)}m",
        )
    if every < 60 and 60 % every == 0:
        return [f"*/{every} * * * *" if every > 1 else "* * * * *"]
    hours: dict[int, list[int]] = {}
    for at in range(0, DAY_MIN, every):
        hours.setdefault(at % 60, []).append(at // 60)
    return [f"{minute} {hour_field(found)} * * *" for minute, found in hours.items()]


def hour_field(hours: list[int]) -> str:
    return "*" if len(hours) == 24 else ",".join(map(str, hours))


def nearest_divisor(minutes: float) -> int:
    divisors = [number for number in range(1, DAY_MIN + 1) if DAY_MIN % number == 0]
    return min(divisors, key=lambda number: abs(number - minutes))


def add_block(crontab: str, block: str) -> str:
    """After the existing lines, in place of an older block."""
    rest = remove_block(crontab)
    return rest + ("\n" if rest and not rest.endswith("\n") else "") + block


def remove_block(crontab: str) -> str:
    """All but our own lines, unchanged."""
    before, begin, rest = crontab.partition(f"{BEGIN}\n")
    _ours, end, after = rest.partition(f"{END}\n")
    return before + after if begin and end else crontab
