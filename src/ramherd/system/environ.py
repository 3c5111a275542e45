"""Variables and arguments as bytes in a file, in the format of /proc/PID/environ.

Inside ramherd they are text: bytes that are not UTF-8 are lone surrogates (surrogateescape), which
JSON can carry. Used by the keeper, so it imports only os.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    Layer = dict[str, Any] | Sequence[Any]


def encode(text: str) -> bytes:
    """Independent of the locale: processes with different locales read each other's files."""
    return text.encode("utf-8", "surrogateescape")


def decode_bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read_own_environ() -> dict[str, str]:
    """The variables of this process."""
    return {decode_bytes(name): decode_bytes(text) for name, text in os.environb.items()}


def render_environ(variables: Mapping[str, str]) -> bytes:
    return b"".join(encode(f"{name}={text}\0") for name, text in variables.items())


def parse_environ(data: bytes) -> dict[bytes, bytes]:
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if entry)
    return {name: text for name, _equals, text in pairs}


def merge_layers(layers: Iterable[Layer]) -> dict[bytes, bytes]:
    """Each layer over the previous one: variables (None removes one), or a part of a file."""
    env: dict[bytes, bytes] = {}
    for layer in layers:
        if not isinstance(layer, dict):
            env.update(parse_environ(read_part(*layer)))
            continue
        for name, text in layer.items():
            if text is None:
                env.pop(encode(name), None)
            else:
                env[encode(name)] = encode(text)
    return env


def render_words(words: Iterable[str]) -> bytes:
    return b"".join(encode(word) + b"\0" for word in words)


def parse_words(data: bytes) -> list[bytes]:
    """Keeps empty arguments."""
    return data.split(b"\0")[:-1]


def read_part(path: str, start: int, end: int) -> bytes:
    """The bytes of a file from `start` to `end`; fewer bytes are an error that names the file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        data = b""
        while len(data) < end - start and (
            more := os.pread(fd, end - start - len(data), start + len(data))
        ):
            data += more
    finally:
        os.close(fd)
    if len(data) < end - start:
        raise OSError(5, f"has less than {end} bytes", path)
    return data


def read_all(path: str) -> bytes:
    return read_part(path, 0, os.stat(path).st_size)
