"""A settings file of another program that we edit, and restore later.

The previous file is saved in the state directory, with a checksum of the text that we wrote. While
the file has this checksum, `restore` writes the saved bytes; otherwise it removes only our part.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ramherd.core.errors import UsageError

Edit = Callable[[str], str]


class Backup(NamedTuple):
    """`before` is None if there was no file; `made_dirs` are directories that we made. `mode` is
    the mode of the file before, if we changed it.
    """

    path: str
    before: bytes | None
    after_sum: str
    made_dirs: tuple[str, ...] = ()
    mode: int | None = None


class EditedFile:
    """A link is followed, and stays a link. `saved` is the file of the backup. `is_private`: our
    part is a secret, so that no other user may read the file.
    """

    def __init__(self, path: Path, saved: Path, *, is_private: bool = False) -> None:
        self.shown = path
        self.path = Path(os.path.realpath(path))
        self._saved = saved
        self._is_private = is_private

    def read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._cannot("read", error) from None

    def text(self) -> str:
        return self._decode(self.read() or b"")

    def read_original(self) -> str:
        """The text before our edit, as far as it is known."""
        kept = self.read_backup()
        return self.text() if kept is None else self._decode(kept.before or b"")

    def edit(self, edit: Edit, without: Edit) -> bool:
        """`without` removes our part again. False if the file has our part already."""
        return self._change(edit, without)

    def restore(self, without: Edit) -> bool:
        """False if the file has no part of ours."""
        now, kept = self.read(), self.read_backup()
        if now is None:
            self._saved.unlink(missing_ok=True)
            return False
        if kept is not None and kept.after_sum == checksum_of(now):
            self._restore(kept)
        elif not self._change(without):
            return False
        elif kept is not None and kept.mode is not None:
            self.path.chmod(kept.mode)
        self._saved.unlink(missing_ok=True)
        return True

    def read_backup(self) -> Backup | None:
        try:
            data = json.loads(self._saved.read_text())
            before = data["before"]
            raw = None if before is None else before.encode("utf-8")
            made = tuple(data["made_dirs"])
            return Backup(data["path"], raw, data["after_sum"], made, data.get("mode"))
        except (OSError, ValueError, KeyError):
            return None

    def _change(self, edit: Edit, without: Edit | None = None) -> bool:
        """Saves a backup, unless there is no `without`."""
        now = self.read()
        text = self._decode(now or b"")
        after = edit(text).encode()
        if is_same(text, after.decode()):
            return False
        made = self._make_dirs()
        if without is not None:
            self._save_backup(now, without(text), after, made)
        self._write(after, now, is_private=self._is_private and without is not None)
        return True

    def _save_backup(
        self, now: bytes | None, bare: str, after: bytes, made: tuple[str, ...]
    ) -> None:
        """Saves the file without our part: the first bytes, if they are still known."""
        known = self.read_backup()
        if known is not None and now is not None and known.after_sum == checksum_of(now):
            backup = known._replace(after_sum=checksum_of(after))
        else:
            before = None if now is None else bare.encode()
            mode = self._read_mode() if self._is_private and now is not None else None
            backup = Backup(str(self.path), before, checksum_of(after), made, mode)
        data = {
            **backup._asdict(),
            "before": None if backup.before is None else backup.before.decode(),
        }
        self._saved.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(self._saved, json.dumps(data).encode(), 0o600)

    def _restore(self, kept: Backup) -> None:
        if kept.before is not None:
            self._write(kept.before, self.read())
            if kept.mode is not None:
                self.path.chmod(kept.mode)
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

    def _read_mode(self) -> int:
        return self.path.stat().st_mode & 0o777

    def _write(self, data: bytes, expected: bytes | None, *, is_private: bool = False) -> None:
        """Writes the whole file or nothing, and never over a change made meanwhile."""
        if self.read() != expected:
            raise UsageError(f"{self.shown} was changed meanwhile", hint="try it again")
        try:
            mode = 0o600 if expected is None or is_private else self._read_mode()
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


def is_same(one: str, two: str) -> bool:
    """The same text, or the same JSON."""
    try:
        return one == two or bool(json.loads(one.strip() or "{}") == json.loads(two.strip()))
    except ValueError:
        return False


def checksum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def backup_name(path: Path) -> str:
    """The name of the backup of a file, whatever link leads to it."""
    return f"{hashlib.sha256(bytes(Path(os.path.realpath(path)))).hexdigest()[:16]}.json"
