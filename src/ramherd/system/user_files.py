"""Reads files that a user wrote, as text, and the user's current directory."""

import os

from ramherd.core.errors import UsageError


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint=explain_unreadable(path, error)
        ) from None


def explain_unreadable(path: str, error: OSError) -> str:
    """The file that was probably meant, or the command that shows why it cannot be read."""
    import difflib  # noqa: PLC0415 - only after an error
    import shlex  # noqa: PLC0415

    folder, name = os.path.split(path)
    if isinstance(error, IsADirectoryError):
        return f"name a file in it: ls {shlex.quote(path)}"
    if isinstance(error, FileNotFoundError):
        close = difflib.get_close_matches(name, list_files(folder or "."), 1)
        there = f"see what is there: ls {shlex.quote(folder or '.')}"
        return f"did you mean {os.path.join(folder, close[0])!r}?" if close else there
    return f"see its rights: ls -ld {shlex.quote(path)}"


def list_files(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The decoder does not count a byte order mark.
        at = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        byte = data[at]
        raise UsageError(
            f"{where} is not UTF-8: byte 0x{byte:02x} at offset {at}",
            hint="save it as UTF-8",
        ) from None


def read_cwd() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            "the current directory no longer exists", hint="cd to a directory that exists"
        ) from None
