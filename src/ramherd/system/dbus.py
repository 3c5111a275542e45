"""One method call to a D-Bus peer that listens on a unix socket, without a bus in between.

The part of the protocol that `act/systemd_scope.py` needs:
https://dbus.freedesktop.org/doc/dbus-specification.html
"""

import errno
import os
import socket
import struct
import time
from pathlib import Path
from typing import NamedTuple

from ramherd.system.unix_socket import connect

METHOD_CALL, METHOD_RETURN, ERROR = 1, 2, 3
PATH, INTERFACE, MEMBER, DESTINATION, SIGNATURE = 1, 2, 3, 6, 8
FIXED_HEADER = 16
BYTE_ORDERS = {b"l": "<", b"B": ">"}
# An answer has about 100 bytes; the manager's signals, which may precede it, up to about 1,000.
MOST_LINE_BYTES = 1 << 10
MOST_MESSAGE_BYTES = 1 << 20


class DBusError(OSError):
    """The peer refused the call, or uses another protocol."""


class MethodCall(NamedTuple):
    destination: str
    path: str
    interface: str
    member: str
    signature: str
    body: bytes


class Message(NamedTuple):
    """`kind` is METHOD_RETURN, ERROR or another kind; `order` is the byte order of its numbers."""

    kind: int
    order: str
    body: bytes


class Writer:
    """Writes values in the order of their signature, each at its alignment."""

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
        """Returns the arguments of `end_array`: the position of the length, and of the content."""
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
    """Returns when the peer has answered without an error; OSError after `timeout_s` in all."""
    deadline_s = time.monotonic() + timeout_s
    with connect(Path(address), timeout_s) as peer:
        stream = Stream(peer, deadline_s)
        peer.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        if not (answer := stream.receive_line()).startswith(b"OK "):
            raise DBusError(f"{address} refused the connection: {printable(answer)}")
        peer.sendall(b"BEGIN\r\n" + encode_call(call))
        # A peer may send signals before its answer.
        while (message := stream.receive_message()).kind not in (METHOD_RETURN, ERROR):
            pass
        if message.kind == ERROR:
            raise DBusError(f"{call.member} was refused: {parse_error(message)}")


class Stream:
    """Data from a peer, until the deadline (monotonic): with a limit for each read alone, a peer
    that sends byte by byte could block us for ever.
    """

    def __init__(self, peer: socket.socket, deadline_s: float) -> None:
        self._peer, self._deadline_s = peer, deadline_s

    def receive_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\r\n"):
            if len(line) > MOST_LINE_BYTES:
                raise DBusError("the peer speaks another protocol")
            line += self.receive(1)
        return line[:-2]

    def receive_message(self) -> Message:
        header = self.receive(FIXED_HEADER)
        order = BYTE_ORDERS.get(header[:1])
        if order is None:
            raise DBusError(f"no byte order is named {printable(header[:1])}")
        body_length, _serial, fields_length = struct.unpack_from(f"{order}III", header, 4)
        fields_length += -fields_length % 8
        if fields_length + body_length > MOST_MESSAGE_BYTES:
            raise DBusError(f"a message of {fields_length + body_length} bytes is too long")
        self.receive(fields_length)
        return Message(header[1], order, self.receive(body_length))

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            left_s = self._deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            self._peer.settimeout(left_s)
            more = self._peer.recv(size - len(data))
            if not more:
                raise DBusError("the peer closed the connection")
            data += more
        return data


def parse_error(message: Message) -> str:
    """The text at the beginning of the body of an error; most peers send one."""
    body = message.body
    if len(body) < 4:
        return "no reason given"
    (length,) = struct.unpack_from(f"{message.order}I", body)
    return printable(body[4 : 4 + min(length, MOST_LINE_BYTES)])


def printable(text: bytes) -> str:
    return "".join(char if char.isprintable() else "?" for char in text.decode(errors="replace"))
