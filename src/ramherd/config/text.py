"""Reading a file that a user wrote, as text."""

from pathlib import Path

from ramherd.core.errors import UsageError


def read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
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
