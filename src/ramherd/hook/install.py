"""Writes our hooks into a settings file of Claude Code, and removes them.

The previous file is saved in the state directory, with a checksum of the text that we wrote. While
the file has this checksum, `uninstall` restores the saved bytes; otherwise it removes only our
hooks.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ramherd.core.errors import UsageError
from ramherd.hook.claude_settings import with_hooks, without_hooks


class Backup(NamedTuple):
    """`before` is None if there was no file; `made_dirs` are directories that we made."""

    path: str
    before: bytes | None
    after_sum: str
    made_dirs: tuple[str, ...] = ()


class SettingsFile:
    """One settings file; a link is followed, and stays a link."""

    def __init__(self, path: Path, state: Path) -> None:
        self.shown = path
        self.path = Path(os.path.realpath(path))
        name = hashlib.sha256(bytes(self.path)).hexdigest()[:16]
        self._saved = state / "claude" / f"{name}.json"

    def read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._cannot("read", error) from None

    def text(self) -> str:
        return self._decode(self.read() or b"")

    def install(self, wait_s: float) -> bool:
        """False if our hooks already exist."""
        return self._change(lambda text: with_hooks(text, str(self.shown), wait_s))

    def uninstall(self) -> bool:
        """False if there were none."""
        now, kept = self.read(), self.read_backup()
        if now is None:
            self._saved.unlink(missing_ok=True)
            return False
        if kept is not None and kept.after_sum == checksum_of(now):
            self._restore(kept)
        elif not self._change(lambda text: without_hooks(text, str(self.shown)), keep=False):
            return False
        self._saved.unlink(missing_ok=True)
        return True

    def read_backup(self) -> Backup | None:
        try:
            data = json.loads(self._saved.read_text())
            before = data["before"]
            raw = None if before is None else before.encode("utf-8")
            return Backup(data["path"], raw, data["after_sum"], tuple(data["made_dirs"]))
        except (OSError, ValueError, KeyError):
            return None

    def _change(self, edit: Callable[[str], str], *, keep: bool = True) -> bool:
        now = self.read()
        text = self._decode(now or b"")
        after = edit(text).encode()
        if is_same_json(text, after.decode()):
            return False
        made = self._make_dirs()
        if keep:
            self._save_backup(now, text, after, made)
        self._write(after, now)
        return True

    def _save_backup(
        self, now: bytes | None, text: str, after: bytes, made: tuple[str, ...]
    ) -> None:
        """Saves the file without our hooks: the first bytes, if they are still known."""
        known = self.read_backup()
        if known is not None and now is not None and known.after_sum == checksum_of(now):
            backup = known._replace(after_sum=checksum_of(after))
        else:
            bare = without_hooks(text, str(self.shown)).encode()
            before = None if now is None else bare
            backup = Backup(str(self.path), before, checksum_of(after), made)
        data = {
            **backup._asdict(),
            "before": None if backup.before is None else backup.before.decode(),
        }
        self._saved.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(self._saved, json.dumps(data).encode(), 0o600)

    def _restore(self, kept: Backup) -> None:
        if kept.before is not None:
            self._write(kept.before, self.read())
            return
        self.path.unlink()
        for made in kept.made_dirs:
            try:
                os.rmdir(made)
            except OSError:  # it has other files now
                return

    def _make_dirs(self) -> tuple[str, ...]:
        missing = [parent for parent in self.path.parents if not parent.exists()]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot("make the directory of", error) from None
        return tuple(map(str, missing))

    def _write(self, data: bytes, expected: bytes | None) -> None:
        """Writes the whole file or nothing, and never over a change made meanwhile."""
        if self.read() != expected:
            raise UsageError(f"{self.shown} was changed meanwhile", hint="try it again")
        try:
            mode = self.path.stat().st_mode & 0o777 if expected is not None else 0o600
            replace(self.path, data, mode)
        except OSError as error:
            raise self._cannot("write", error) from None

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.shown} is not UTF-8: {error.reason}") from None

    def _cannot(self, what: str, error: OSError) -> UsageError:
        return UsageError(f"cannot {what} {self.shown}: {error.strerror}")


def replace(path: Path, data: bytes, mode: int) -> None:
    fresh = path.with_name(f"{path.name}.ramherd-{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def is_same_json(one: str, two: str) -> bool:
    return bool(json.loads(one.strip() or "{}") == json.loads(two.strip() or "{}"))


def checksum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
