"""Asking a manager for a scope: peers that answer, refuse, hang, or speak something else."""

import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ramherd.act import systemd_scope
from ramherd.act.systemd_scope import encode_unit, enter_scope, needs_scope, start_scope
from ramherd.measure.cgroups import Trees
from ramherd.system.dbus import ERROR, METHOD_RETURN

SIGNAL = 4
Peer = Callable[[socket.socket], None]


def message(kind: int, order: str = "<", text: str = "") -> bytes:
    """With one header field, REPLY_SERIAL, and a body of one string."""
    body = struct.pack(f"{order}I", len(text)) + text.encode() + b"\0" if text else b""
    name = b"l" if order == "<" else b"B"
    fields = struct.pack(f"{order}B3sI", 5, b"\1u\0", 1)
    header = struct.pack(f"{order}cBBBIII", name, kind, 1, 1, len(body), 7, len(fields))
    return header + fields + body


def authenticated(*answers: bytes, each_s: float = 0.0) -> Peer:
    """A peer that lets us in and sends these."""

    def serve(peer: socket.socket) -> None:
        assert peer.recv(1 << 10).startswith(b"\0AUTH EXTERNAL ")
        peer.sendall(b"OK 1234deadbeef\r\n")
        assert b"StartTransientUnit" in peer.recv(1 << 16)
        for answer in answers:
            peer.sendall(answer)
            time.sleep(each_s)

    return serve


def first_says(line: bytes) -> Peer:
    def serve(peer: socket.socket) -> None:
        peer.recv(1 << 10)
        peer.sendall(line)

    return serve


def hang(peer: socket.socket) -> None:
    peer.recv(1 << 10)
    peer.recv(1 << 10)  # until the other side gives up


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Peer], None]]:
    """Stands for the user's manager, on a socket of its own."""
    path = tmp_path / "private"
    monkeypatch.setattr(systemd_scope, "manager_socket", lambda: str(path))
    threads: list[threading.Thread] = []

    def start(serve: Peer) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            with listener, listener.accept()[0] as peer:
                try:
                    serve(peer)
                except ConnectionError:
                    pass  # the other side gave up

        threads.append(threading.Thread(target=answer))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_answer_is_found_behind_signals_in_either_byte_order(
    order: str, manager: Callable[[Peer], None]
) -> None:
    """A manager may send signals before its answer; pieces of a message may come apart."""
    sent = message(SIGNAL, order, "x" * 5000) + message(METHOD_RETURN, order)
    manager(authenticated(sent[:9], sent[9:5030], sent[5030:], each_s=0.01))

    assert start_scope(1) == ""


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_refusal_has_the_managers_words(order: str, manager: Callable[[Peer], None]) -> None:
    """What it sends is shown without control characters."""
    manager(authenticated(message(ERROR, order, "Permission\x1b denied")))

    assert start_scope(1) == "systemd: StartTransientUnit was refused: Permission? denied"


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        (first_says(b"REJECTED EXTERNAL\r\n"), "refused the connection: REJECTED EXTERNAL"),
        (first_says(b"HTTP/1.1 400 Bad Request" * 100), "speaks another protocol"),
        (first_says(b""), "closed the connection|Connection reset|Broken pipe"),
        (authenticated(message(ERROR)), "was refused: no reason given"),
        (authenticated(b"x" * 16), "no byte order is named x"),
        (authenticated(struct.pack("<cBBBIII", b"l", 2, 0, 1, 1 << 31, 1, 8)), "is too long"),
        (authenticated(message(METHOD_RETURN)[:20]), "closed the connection|Connection reset"),
    ],
)
def test_a_peer_that_is_no_manager_is_a_reason(
    peer: Peer, why: str, manager: Callable[[Peer], None]
) -> None:
    """Never an error that ends the start."""
    manager(peer)
    assert re.search(why, start_scope(1))


@pytest.mark.parametrize(
    "peer", [hang, authenticated(*[bytes([byte]) for byte in b"l\2\0\1" * 9], each_s=0.05)]
)
def test_a_manager_that_hangs_holds_up_no_start(
    peer: Peer, manager: Callable[[Peer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is for all of the answer, however small the pieces in which it comes."""
    monkeypatch.setattr(systemd_scope, "ANSWER_S", 0.3)
    manager(peer)
    began_s = time.monotonic()

    assert start_scope(1) == "systemd did not answer within 0.3 s"
    assert time.monotonic() - began_s < 1.0


def test_without_a_manager_there_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that is gone, or that nobody listens on."""
    path = tmp_path / "private"
    monkeypatch.setattr(systemd_scope, "manager_socket", lambda: str(path))
    assert start_scope(1) == "systemd: No such file or directory"
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind(str(path))
    assert start_scope(1) == "systemd: Connection refused"


def test_the_unit_is_encoded_as_the_manager_reads_it() -> None:
    """Name, mode, three properties and no auxiliary units, each at its alignment."""
    body = encode_unit("a.scope", 258)
    assert body[:12] == b"\7\0\0\0a.scope\0"
    assert body[12:21] == b"\4\0\0\0fail\0"
    (length,) = struct.unpack_from("<I", body, 24)
    # The array begins at a multiple of eight, and an empty one follows it.
    assert not any(body[32 + length :])
    assert len(body) % 8 == 0
    assert b"\4\0\0\0PIDs\0\2au\0" in body
    at = body.index(b"\2au\0") + 4
    at += -at % 4
    assert struct.unpack_from("<II", body, at) == (4, 258)


def test_a_cgroup_that_cannot_be_read_needs_no_scope(tmp_path: Path) -> None:
    """The pens report it."""
    assert not needs_scope(Trees({}, tmp_path / "gone"))


def test_a_process_that_is_not_moved_goes_on_with_a_reason(
    manager: Callable[[Peer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager said yes, and then did nothing."""
    monkeypatch.setattr(systemd_scope, "MOVE_S", 0.1)
    monkeypatch.setattr(systemd_scope, "needs_scope", lambda _trees: True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    manager(authenticated(message(METHOD_RETURN)))

    assert enter_scope("auto") == "systemd did not move this process within 0.1 s"
