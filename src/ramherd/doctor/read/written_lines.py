"""Lines of start files, units, timers, cron and settings, with their place.

Only lines of files that are known for such settings, and of scripts that cron or a unit starts.
They may hold secrets: only the part that matters is ever shown.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ramherd.core.units import GIB, KIB, MIB, TIB
from ramherd.doctor.check.edits import OWN_CRONTAB
from ramherd.doctor.facts import SHELL_COMMENT, Line, Unit
from ramherd.doctor.read.host import Host

AT_HOME = (
    ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".zshenv", ".zprofile",
    ".zshrc", ".zlogin", ".pam_environment", ".config/fish/config.fish",
    ".config/fish/conf.d/*.fish", ".config/environment.d/*.conf",
)  # fmt: skip
FOR_ALL = (
    "etc/environment", "etc/profile", "etc/bash.bashrc", "etc/profile.d/*.sh", "etc/zsh/zshenv",
    "etc/zsh/zshrc", "etc/environment.d/*.conf",
)  # fmt: skip
UNITS = ("etc/systemd/system", "etc/systemd/user")
HOME_UNITS = ".config/systemd/user"
UNIT_FILES = ("*.service", "*.timer", "*.service.d/*.conf")
SYSCTLS = ("etc/sysctl.conf", "etc/sysctl.d/*.conf")
CRONS = ("etc/crontab", "etc/cron.d/*", "etc/cron.hourly/*", "etc/cron.daily/*", "etc/anacrontab")
SPOOLS = ("var/spool/cron/crontabs", "var/spool/cron")
# Where users keep their own commands; only shell scripts are read.
HOME_SCRIPTS = ("bin/*", ".local/bin/*", "*.sh")
SHELLS = re.compile(rb"#!\s*(?:/\S*/)?(?:env\s+)?(?:ba|da|z|k)?sh\b")
SCRIPT = re.compile(rb"#!")
MOST_SCRIPTS = 500
# Settings and scripts of users are short; a longer file was not written by hand.
MOST_BYTES = 256 << 10
MOST_LINE = 4096
CRONTAB_S = 1.0
_PATH = re.compile(r"(?<![\w.~$-])(~?/[\w./+@-]+)")
# One assignment and nothing else: `export A=b`, `set -gx A b`, `A DEFAULT=b`.
_PLAIN = re.compile(
    r"""(?:(?:export\s+)?\w+=|set\s+-\w+\s+\w+\s+|\w+\s+DEFAULT=)
        (?:"[^"`(\\]*"|'[^']*'|[^\s;&|"'`()\\]+)\s*(?:\#.*)?""",
    re.VERBOSE,
)
_AGENTS = re.compile(r"(?:^|[/\s])(claude|codex|gemini|opencode|qwen|cursor-agent)(?=\s|$)")
_SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_MEMORY_MAX = re.compile(r"Memory(?:Max|Limit)\s*=\s*(\d+)([KMGT]?)\s*$")


def read_written(host: Host) -> list[Line]:
    found = [*read_starts(host), *read_units(host), *read_sysctls(host), *read_crons(host)]
    return [*found, *read_scripts(host, found)]


def read_starts(host: Host, suffix: str = "") -> Iterator[Line]:
    """With a suffix: their copies of that name."""
    yield from read_globs(host.home, [f"{name}{suffix}" for name in AT_HOME], "start")
    yield from read_globs(host.root, [f"{name}{suffix}" for name in FOR_ALL], "start")


def read_units(host: Host) -> Iterator[Line]:
    for directory in (*(host.root / unit for unit in UNITS), host.home / HOME_UNITS):
        yield from read_globs(directory, UNIT_FILES, "unit")


def read_sysctls(host: Host) -> Iterator[Line]:
    yield from read_globs(host.root, SYSCTLS, "sysctl")


def read_crons(host: Host) -> Iterator[Line]:
    """Users cannot read their own table directly; `crontab` reads it for them."""
    yield from read_globs(host.root, CRONS, "cron")
    own = host.env.get("LOGNAME", "-") if host.uid else "root"
    for spool in SPOOLS:
        yield from read_lines(host.root / spool / own, "cron")
    if host.uid and host.root == Path("/"):
        yield from split_lines(OWN_CRONTAB, ask_crontab(), "cron")


def ask_crontab() -> str:
    try:
        done = subprocess.run(
            ["crontab", "-l"], capture_output=True, timeout=CRONTAB_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def read_scripts(host: Host, lines: Iterable[Line]) -> Iterator[Line]:
    """Scripts that a line of cron or a unit names, and those of the user: reapers are usually
    there.
    """
    own = (path for pattern in HOME_SCRIPTS for path in host.home.glob(pattern))
    seen = {path for path in islice(own, MOST_SCRIPTS) if starts_with(path, SHELLS)}
    for path in sorted(seen):
        yield from read_lines(path, "script")
    for line in lines:
        if line.kind == "cron" or (line.kind == "unit" and line.text.startswith("Exec")):
            for word in _PATH.findall(line.text):
                path = resolve(host, word)
                if path not in seen and starts_with(path, SCRIPT):
                    seen.add(path)
                    yield from read_lines(path, "script")


def resolve(host: Host, word: str) -> Path:
    if word.startswith("~/"):
        return host.home / word[2:]
    return Path(word) if word.startswith(f"{host.home}/") else host.root / word.lstrip("/")


def starts_with(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Only files are opened: a pipe may never answer."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return pattern.match(file.read(64)) is not None
    except OSError:
        return False


def read_globs(top: Path, patterns: Iterable[str], kind: str) -> Iterator[Line]:
    for pattern in patterns:
        for path in sorted(top.glob(pattern)):
            yield from read_lines(path, kind)


def read_lines(path: Path, kind: str) -> Iterator[Line]:
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return
        text = path.read_text(errors="replace")
    except OSError:
        return
    yield from split_lines(str(path), text, kind, is_writable=os.access(path, os.W_OK))


def split_lines(path: str, text: str, kind: str, *, is_writable: bool = True) -> Iterator[Line]:
    """Without comments, among them the lines that a fix has commented out. A continuation line
    cannot be removed alone.
    """
    goes_on = False
    for number, line in enumerate(text.split("\n"), 1):
        body = line.strip() if len(line) <= MOST_LINE else ""
        if body and not body.startswith(("#", ";", SHELL_COMMENT.strip())):
            alone = not goes_on and not line.endswith("\\")
            plain = kind == "start" and alone and _PLAIN.fullmatch(line) is not None
            yield Line(path, number, line, kind, plain, is_writable)
        goes_on = line.endswith("\\")


def read_agent_units(written: Iterable[Line]) -> list[Unit]:
    """Service files that start an agent themselves."""
    programs: dict[str, str] = {}
    limits: dict[str, int] = {}
    for line in written:
        unit = re.sub(r"\.d/[^/]*\.conf$", "", line.path)
        if line.kind != "unit":
            continue
        if line.text.startswith("ExecStart=") and (match := _AGENTS.search(line.text[10:])):
            programs[unit] = match[1]
        elif match := _MEMORY_MAX.match(line.text):
            limits[unit] = int(match[1]) * _SIZES[match[2]]
    return [Unit(path, name, limits.get(path)) for path, name in programs.items()]
