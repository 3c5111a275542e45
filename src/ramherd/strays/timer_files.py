"""The texts that make `ramherd reap` run on a timer: systemd units, a launchd job, cron lines."""

import plistlib
import shlex
from collections.abc import Mapping, Sequence

from ramherd.core.errors import UsageError
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


def make_units(argv: Sequence[str], env: Mapping[str, str], every_s: float) -> dict[str, str]:
    """File name -> text of the service and of its timer."""
    environment = "".join(f"Environment={quote_unit(f'{k}={v}')}\n" for k, v in env.items())
    command = " ".join(quote_unit(word) for word in argv)
    service = SERVICE.format(environment=environment, command=command)
    timer = TIMER.format(every=format_duration(every_s), seconds=round(every_s))
    return {f"{NAME}.service": service, f"{NAME}.timer": timer}


def quote_unit(word: str) -> str:
    """systemd expands % and $, and knows quotes and backslashes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


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
    """`*/90` would fire every hour: minutes are listed by the hours in which they are due."""
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
    """After what is there, in place of an older block."""
    rest = remove_block(crontab)
    return rest + ("\n" if rest and not rest.endswith("\n") else "") + block


def remove_block(crontab: str) -> str:
    """All but our own lines, as they were."""
    before, begin, rest = crontab.partition(f"{BEGIN}\n")
    _ours, end, after = rest.partition(f"{END}\n")
    return before + after if begin and end else crontab
