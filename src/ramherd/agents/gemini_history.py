"""Tokens from gemini's own history: gemini prints them only at its end, and not when stopped.

Each line is an entry. Each run of a session begins with a line that names the session; a message
may be written more than once, each time more complete.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from ramherd.agents.progress import Spent

BEGIN = b'{"sessionId":'
MESSAGE = re.compile(rb'\{"id":"([^"]+)","timestamp":"[^"]*","type":"gemini"')
TOKENS = re.compile(rb'"tokens":\{"input":(\d+),"output":(\d+)')
# Long lines are read in pieces, and only the end of the file is read: 10 ms.
PIECE_BYTES = 64 << 10
MOST_BYTES = 16 << 20


def read_last_run(session: str, env: Mapping[str, str]) -> Spent:
    """The tokens of the last run of a session; none if its history is not found."""
    home = env.get("GEMINI_CLI_HOME") or env.get("HOME") or os.path.expanduser("~")
    for file in Path(home, ".gemini/tmp").glob(f"*/chats/session-*-{session[:8]}.jsonl"):
        try:
            with file.open("rb") as opened:
                opened.seek(max(os.fstat(opened.fileno()).st_size - MOST_BYTES, 0))
                return parse_last_run(pieces_of(opened))
        except OSError:
            continue
    return Spent()


def pieces_of(file: BinaryIO) -> Iterable[bytes]:
    return iter(lambda: file.readline(PIECE_BYTES), b"")


def parse_last_run(pieces: Iterable[bytes]) -> Spent:
    """`pieces` are lines, long ones in parts."""
    taken: dict[bytes, tuple[int, int]] = {}
    message, fresh = b"", True
    for piece in pieces:
        if fresh:
            named = MESSAGE.match(piece)
            message = named[1] if named else b""
            if piece.startswith(BEGIN):
                taken.clear()
        if message and (found := TOKENS.search(piece)):
            taken[message] = int(found[1]), int(found[2])
            message = b""
        fresh = piece.endswith(b"\n")
    return Spent(sum(tokens for tokens, _ in taken.values()), sum(out for _, out in taken.values()))
