"""Checks which requests are allowed. Only the user can connect to the unix socket; every program
and every web page on this machine can connect to the port on 127.0.0.1, so there a token, the Host
and the Origin are checked.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from ramherd.api.request_head import HttpError
from ramherd.system.files import open_private

NAMES = ("127.0.0.1", "localhost")


def check_browser(headers: Mapping[str, str], port: int | None) -> None:
    """A web page may send requests to us (Origin), or point its own name to us (Host)."""
    hosts = set(NAMES) | {f"{name}:{port}" for name in NAMES}
    origin = headers.get("origin")
    if origin is not None and (port is None or origin not in {f"http://{host}" for host in hosts}):
        raise HttpError(403, "requests of web pages are refused")
    if port is not None and headers.get("host") not in hosts:
        raise HttpError(403, f"the Host is not 127.0.0.1:{port}")


def check_token(headers: Mapping[str, str], token: str) -> None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_same(given.encode(), token.encode()):
        raise HttpError(401, "no or a wrong token", hint="Authorization: Bearer TOKEN")


def is_same(one: bytes, other: bytes) -> bool:
    """Takes the same time however many bytes match."""
    difference = len(one) ^ len(other)
    for left, right in zip(one.ljust(len(other), b"\0"), other, strict=False):
        difference |= left ^ right
    return difference == 0


def make_token(path: Path) -> str:
    """The token stays the same across restarts, so that clients configured with it keep working."""
    try:
        with open(open_private(str(path), os.O_RDONLY), encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        token = os.urandom(24).hex()
        write_token(path, token)
        return token


def write_token(path: Path, token: str) -> None:
    """A file of another program stays, and clients that read it are refused."""
    fd = open_private(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(fd, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
