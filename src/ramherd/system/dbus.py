"""One method call to a D-Bus peer that listens on a unix socket, without a bus in between.

As much of the protocol as `act/systemd_scope.py` needs: https://dbus.freedesktop.org/doc/dbus-specification.html
"""

import os
import socket
import struct
from typing import NamedTuple

METHOD_CALL, METHOD_RETURN, ERROR = 1, 2, 3
PATH, INTERFACE, MEMBER, DESTINATION, SIGNATURE = 1, 2, 3, 6, 8
FIXED_HEADER = 16


class DBusError(OSError):
    """The peer refused the call, or speaks another protocol."""


class MethodCall(NamedTuple):
    destination: str
    path: str
    interface: str
    member: str
    signature: str
    body: bytes


class Writer:
    """Values in the order of their signature, each at its alignment."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, to: int) -> None:
        self.data += bytes(-len(self.data) % to)

    def uint32(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def string(self, value: str) -> None:
        self.uint32(len(value.encode()))
        self.data += value.encode() + b"\0"

    def signature(self, value: str) -> None:
        self.data += bytes([len(value)]) + value.encode() + b"\0"

    def begin_array(self, alignment: int) -> tuple[int, int]:
        """What `end_array` needs: where its length stands, and where its content begins."""
        self.uint32(0)
        length_at = len(self.data) - 4
        self.align(alignment)
        return length_at, len(self.data)

    def end_array(self, begun: tuple[int, int]) -> None:
        length_at, start = begun
        struct.pack_into("<I", self.data, length_at, len(self.data) - start)


def encode_call(call: MethodCall, serial: int = 1) -> bytes:
    writer = Writer()
    writer.data += struct.pack("<cBBBII", b"l", METHOD_CALL, 0, 1, len(call.body), serial)
    fields = writer.begin_array(8)
    for number, kind, value in (
        (PATH, "o", call.path),
        (INTERFACE, "s", call.interface),
        (MEMBER, "s", call.member),
        (DESTINATION, "s", call.destination),
        (SIGNATURE, "g", call.signature),
    ):
        writer.align(8)
        writer.data.append(number)
        writer.signature(kind)
        if kind == "g":
            writer.signature(value)
        else:
            writer.string(value)
    writer.end_array(fields)
    writer.align(8)
    return bytes(writer.data) + call.body


def call_method(address: str, call: MethodCall, timeout_s: float) -> None:
    """Returns when the peer has answered without an error."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(timeout_s)
        peer.connect(address)
        peer.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        if not receive_line(peer).startswith(b"OK "):
            raise DBusError(f"{address} refused the connection")
        peer.sendall(b"BEGIN\r\n" + encode_call(call))
        # A peer may send signals before its answer.
        while (kind := receive_message(peer)) not in (METHOD_RETURN, ERROR):
            pass
        if kind == ERROR:
            raise DBusError(f"{address} refused {call.member}")


def receive_line(peer: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\r\n"):
        line += receive(peer, 1)
    return line


def receive_message(peer: socket.socket) -> int:
    """Its type."""
    header = receive(peer, FIXED_HEADER)
    order = "<" if header[:1] == b"l" else ">"
    (body_length,), (fields_length,) = (
        struct.unpack_from(f"{order}I", header, at) for at in (4, 12)
    )
    receive(peer, fields_length + -fields_length % 8 + body_length)
    return header[1]


def receive(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise DBusError("the connection was closed")
        data += more
    return data
