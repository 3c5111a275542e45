"""Runs a verb on a timer (systemd, launchd or cron, whichever is available), and undoes it.

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
from typing import NamedTuple

from ramherd.act.user_manager import (
    has_systemd,
    quote_unit,
    read_failure,
    run_command,
    unit_dir,
)
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import format_duration

DAY_MIN = 24 * 60

SERVICE = """\
[Unit]
Description={what}

[Service]
Type=oneshot
Nice=10
{environment}ExecStart={command}
"""
TIMER = """\
[Unit]
Description={what}, every {every}

[Timer]
OnActiveSec=1min
OnUnitActiveSec={seconds}s
AccuracySec=30s

[Install]
WantedBy=timers.target
"""


class TimerJob(NamedTuple):
    """A verb that runs on a timer, and what it does in words."""

    verb: str
    what: str

    @property
    def unit(self) -> str:
        return f"ramherd-{self.verb}"

    @property
    def label(self) -> str:
        return f"dev.ramherd.{self.verb}"

    @property
    def marks(self) -> tuple[str, str]:
        """Around our lines in a table of cron."""
        return f"# ramherd {self.verb}: begin", f"# ramherd {self.verb}: end"


REAP = TimerJob("reap", "End what coding agents left behind")
WATCH = TimerJob("watch", "Keep a census of coding agents")


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


def choose_kind(job: TimerJob) -> str:
    """The user's service manager, if it answers; otherwise cron."""
    if sys.platform == "darwin":
        return "launchd"
    if has_systemd():
        return "systemd"
    if shutil.which("crontab"):
        return "cron"
    raise NoTimer(
        "no timer here: systemd does not answer to this user, and there is no crontab",
        hint=f"apt-get install cron, or call `ramherd {job.verb}` from a timer of your own",
    )


def install(
    job: TimerJob, argv: Sequence[str], env: Mapping[str, str], every_s: float, record: Path,
    *, kind: str,
) -> Installed:  # fmt: skip
    """An older timer is removed first."""
    if record.exists():
        uninstall(job, record)
    if kind == "cron":
        found = install_cron(job, make_cron_lines(job, argv, env, every_s))
    elif kind == "systemd":
        found = write_files(kind, unit_dir(), make_units(job, argv, env, every_s))
    else:
        agents = Path.home() / "Library/LaunchAgents"
        plist = make_plist(job, argv, env, every_s)
        found = write_files(kind, agents, {f"{job.label}.plist": plist})
    # Recorded before the start, so that any later failure can be undone.
    record.write_text(json.dumps(asdict(found)))
    start(job, found)
    return found


def uninstall(job: TimerJob, record: Path) -> Installed | None:
    """The undone changes; None if nothing was installed."""
    try:
        found = Installed(**json.loads(record.read_text()))
    except FileNotFoundError:
        return None
    stop(job, found)
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


def install_cron(job: TimerJob, block: str) -> Installed:
    old = read_crontab()
    write_crontab(add_block(old or "", block, job), job)
    return Installed("cron", {"crontab": block}, had_crontab=old is not None)


def read_crontab() -> str | None:
    done = run_command("crontab", "-l")
    return done.stdout if done.returncode == 0 else None


def write_crontab(text: str, job: TimerJob) -> None:
    check(run_command("crontab", "-", text=text), job)


def start(job: TimerJob, found: Installed) -> None:
    if found.kind == "systemd":
        check(run_command("systemctl", "--user", "daemon-reload"), job)
        check(run_command("systemctl", "--user", "enable", "--now", f"{job.unit}.timer"), job)
    elif found.kind == "launchd":
        (path,) = found.files
        check(run_command("launchctl", "bootstrap", f"gui/{os.getuid()}", path), job)


def stop(job: TimerJob, found: Installed) -> None:
    """A timer that was stopped by hand, or never started, does not keep its files."""
    if found.kind == "systemd":
        run_command("systemctl", "--user", "disable", "--now", f"{job.unit}.timer")
    elif found.kind == "launchd":
        run_command("launchctl", "bootout", f"gui/{os.getuid()}/{job.label}")
    else:
        rest = remove_block(read_crontab() or "", job)
        if rest or found.had_crontab:
            write_crontab(rest, job)
        else:
            run_command("crontab", "-r")


def check(done: "subprocess.CompletedProcess[str]", job: TimerJob) -> None:
    if failure := read_failure(done):
        raise NoTimer(
            f"cannot set the timer: {failure}",
            hint=f"ramherd {job.verb} --uninstall takes back what was written",
        )


def make_units(
    job: TimerJob, argv: Sequence[str], env: Mapping[str, str], every_s: float
) -> dict[str, str]:
    """File name -> text of the service and of its timer."""
    environment = "".join(f"Environment={quote_unit(f'{k}={v}')}\n" for k, v in env.items())
    command = " ".join(quote_unit(word) for word in argv)
    service = SERVICE.format(what=job.what, environment=environment, command=command)
    timer = TIMER.format(what=job.what, every=format_duration(every_s), seconds=round(every_s))
    return {f"{job.unit}.service": service, f"{job.unit}.timer": timer}


def make_plist(job: TimerJob, argv: Sequence[str], env: Mapping[str, str], every_s: float) -> str:
    plist = {
        "Label": job.label,
        "ProgramArguments": list(argv),
        "EnvironmentVariables": dict(env),
        "StartInterval": round(every_s),
        "ProcessType": "Background",
    }
    return plistlib.dumps(plist).decode()


def make_cron_lines(
    job: TimerJob, argv: Sequence[str], env: Mapping[str, str], every_s: float
) -> str:
    """`*/90` would fire every hour, so the due minutes are listed for each hour."""
    words = [f"{key}={shlex.quote(value)}" for key, value in env.items()]
    words += [shlex.quote(word) for word in argv]
    # cron ends the command at a %.
    command = " ".join(words).replace("%", "\\%")
    lines = [f"{when} {command}" for when in cron_times(every_s)]
    begin, end = job.marks
    return "\n".join([begin, *lines, end]) + "\n"


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


def add_block(crontab: str, block: str, job: TimerJob) -> str:
    """After the existing lines, in place of an older block."""
    rest = remove_block(crontab, job)
    return rest + ("\n" if rest and not rest.endswith("\n") else "") + block


def remove_block(crontab: str, job: TimerJob) -> str:
    """All but our own lines, unchanged."""
    first, last = job.marks
    before, begin, rest = crontab.partition(f"{first}\n")
    _ours, end, after = rest.partition(f"{last}\n")
    return before + after if begin and end else crontab
