"""Files that a user wrote, as text, and the directory that the user is in."""

import os

from ramherd.core.errors import UsageError


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


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
        raise UsageError("the current directory is gone", hint="cd to one that is there") from None
