"""Applies the doctor's fixes: each is checked again first."""

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

from ramherd.core.errors import RamherdError
from ramherd.doctor.findings import CommentOut, Fix, RunCommand, SetKernel, SetMode
from ramherd.system.files import write_control

COMMAND_S = 10.0
MOST_COPIES = 20


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


def apply(fix: Fix, copies: dict[str, str]) -> Fix:
    """Returns the fix as it was applied. `copies` are the copies of files so far: of several lines
    of one file, the first makes the copy.
    """
    try:
        match fix:
            case SetMode():
                set_mode(fix)
            case CommentOut():
                return comment_out(fix, copies)
            case SetKernel():
                set_kernel(fix)
            case RunCommand():
                run_command(fix)
    except OSError as error:
        raise RamherdError(f"cannot {fix.step}: {error.strerror}") from None
    return fix


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


def comment_out(fix: CommentOut, copies: dict[str, str]) -> CommentOut:
    """All or nothing, and through links: start files often are links."""
    path = Path(os.path.realpath(fix.path))
    data = path.read_bytes()
    lines = data.split(b"\n")
    if fix.line > len(lines) or lines[fix.line - 1].decode(errors="replace") != fix.text:
        raise Changed(f"line {fix.line} of {fix.path} has changed")
    if fix.path not in copies:
        copies[fix.path] = save_copy(path, fix.backup)
    lines[fix.line - 1] = fix.prefix.encode() + lines[fix.line - 1]
    write_whole(path, b"\n".join(lines))
    return replace(fix, backup=copies[fix.path])


def save_copy(path: Path, backup: str) -> str:
    """An older copy is kept: it may be the only one of its kind."""
    names = (backup, *(f"{backup}.{number}" for number in range(2, MOST_COPIES + 1)))
    free = next((name for name in names if not os.path.lexists(name)), None)
    if free is None:
        raise Changed(f"{path} has {MOST_COPIES} copies already", hint=f"rm {backup}.*")
    shutil.copy2(path, free)
    return free


def write_whole(path: Path, data: bytes) -> None:
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
    if fix.kept_in:
        write_boot_line(fix)


def write_boot_line(fix: SetKernel) -> None:
    path = Path(fix.kept_in)
    lines = path.read_text().splitlines() if path.exists() else []
    others = [line for line in lines if line.partition("=")[0].strip() != fix.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*others, fix.line]) + "\n")


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
