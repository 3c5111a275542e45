"""The messages that a session has already shown: one file each. If no file can be made, only the
start of a session shows messages: once too few is better than with every subagent.
"""

from __future__ import annotations

import os
import zlib

# The event that `ramherd hook install` sends to check that the hook works.
CHECK = "Check"


def is_first(runtime: str, session: str, text: str, event: str) -> bool:
    try:
        os.makedirs(f"{runtime}/said", 0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(
            os.open(f"{runtime}/said/{name(session)}.{zlib.crc32(text.encode())}", flags, 0o600)
        )
    except FileExistsError:
        return False
    except OSError:
        return event in ("SessionStart", CHECK)
    return True


def forget(runtime: str, session: str) -> None:
    try:
        for entry in os.listdir(f"{runtime}/said"):
            if entry.startswith(f"{name(session)}."):
                os.unlink(f"{runtime}/said/{entry}")
    except OSError:
        pass


def name(session: str) -> str:
    """The id without characters that could lead to another directory."""
    return "".join(letter for letter in session if letter.isalnum() or letter == "-")[:64]
