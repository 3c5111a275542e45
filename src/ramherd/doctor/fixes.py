"""Applies the doctor's fixes: each is checked again first."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

from ramherd.core.errors import RamherdError
from ramherd.doctor.findings import CommentOut, Fix, RunCommand, SetKernel, SetMode
from ramherd.system.files import write_control

COMMAND_S = 10.0


class Changed(RamherdError):
    """The file is no longer as it was read, so nothing is done."""


def can_apply(fix: Fix) -> bool:
    """Whether this user may apply it; a fix that would fail is not worth a question."""
    match fix:
        case SetMode(path):
            return os.path.lexists(path) and os.geteuid() in (0, os.lstat(path).st_uid)
        case CommentOut(path):
            folders = {os.path.dirname(path), os.path.dirname(os.path.realpath(path))}
            return all(os.access(name, os.W_OK) for name in (path, *folders))
        case SetKernel(path):
            return os.access(path, os.W_OK)
        case RunCommand(argv):
            return shutil.which(argv[0]) is not None


def apply(fix: Fix, made: set[str]) -> None:
    """`made` are the copies so far: of several lines of one file, the first makes the copy."""
    try:
        match fix:
            case SetMode():
                set_mode(fix)
            case CommentOut():
                comment_out(fix, made)
            case SetKernel():
                set_kernel(fix)
            case RunCommand():
                run_command(fix)
    except OSError as error:
        raise RamherdError(f"cannot {fix.step}: {error.strerror}") from None


def set_mode(fix: SetMode) -> None:
    """Not through a link, which may lead anywhere by now."""
    fd = os.open(fix.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = stat.S_IMODE(os.fstat(fd).st_mode) & 0o777
        if mode != fix.old_mode:
            raise Changed(f"{fix.path} has mode {mode:04o} now, not {fix.old_mode:04o}")
        os.fchmod(fd, fix.mode)
    finally:
        os.close(fd)


def comment_out(fix: CommentOut, made: set[str]) -> None:
    """All or nothing, and through links: start files often are links."""
    path = Path(os.path.realpath(fix.path))
    data = path.read_bytes()
    lines = data.split(b"\n")
    if fix.line > len(lines) or lines[fix.line - 1].decode(errors="replace") != fix.text:
        raise Changed(f"line {fix.line} of {fix.path} has changed")
    if fix.backup not in made:
        save_copy(path, Path(fix.backup))
        made.add(fix.backup)
    lines[fix.line - 1] = fix.prefix.encode() + lines[fix.line - 1]
    replace(path, b"\n".join(lines))


def save_copy(path: Path, backup: Path) -> None:
    if backup.exists():
        raise Changed(f"{backup} already exists", hint=f"diff {backup} {path}, then remove it")
    shutil.copy2(path, backup)


def replace(path: Path, data: bytes) -> None:
    found, new = path.stat(), path.with_name(f"{path.name}.ramherd-new")
    try:
        new.write_bytes(data)
        os.chown(new, found.st_uid, found.st_gid)
        new.chmod(stat.S_IMODE(found.st_mode))
        new.rename(path)
    finally:
        new.unlink(missing_ok=True)


def set_kernel(fix: SetKernel) -> None:
    value = Path(fix.path).read_text().strip()
    if value != str(fix.old_value):
        raise Changed(f"{fix.name} is {value} now, not {fix.old_value}")
    write_control(fix.path, str(fix.value))


def run_command(fix: RunCommand) -> None:
    try:
        done = subprocess.run(
            fix.argv, capture_output=True, timeout=COMMAND_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise RamherdError(f"{fix.step} did not finish within {COMMAND_S:g} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise RamherdError(f"{fix.step}: exit status {done.returncode}: {lines[-1]}")
