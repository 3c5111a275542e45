"""Every connected unix socket and its other end, from the kernel (sock_diag over netlink)."""

import socket
import struct
from collections.abc import Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST_DUMP = 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
ESTABLISHED = 1 << 1
SHOW_NAME_AND_PEER = 1 | 4
ATTR_NAME, ATTR_PEER = 0, 2
_HEADER, _MESSAGE, _ATTR = struct.Struct("=IHHII"), struct.Struct("=BBBBI8x"), struct.Struct("=HH")


def read_unix_sockets() -> Iterator[tuple[int, str, int]]:
    """(inode, name, inode of the other end) of every connected unix socket."""
    request = struct.pack(
        "=BBHIIIII", socket.AF_UNIX, 0, 0, ESTABLISHED, 0, SHOW_NAME_AND_PEER, 0, 0
    )
    header = _HEADER.pack(
        _HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST_DUMP, 1, 0
    )
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG) as link:
            link.send(header + request)
            while True:
                for kind, body in parse_messages(link.recv(1 << 16)):
                    if kind in (NLMSG_DONE, NLMSG_ERROR):
                        return
                    yield parse_socket(body)
    except OSError:  # a kernel without sock_diag
        return


def parse_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body) of the netlink messages in one datagram, each padded to four bytes."""
    while len(data) >= _HEADER.size:
        length, kind, *_rest = _HEADER.unpack_from(data)
        if length < _HEADER.size:
            return
        yield kind, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def parse_socket(body: bytes) -> tuple[int, str, int]:
    _family, _kind, _state, _pad, inode = _MESSAGE.unpack_from(body)
    name, peer = "", 0
    attrs = body[_MESSAGE.size :]
    while len(attrs) >= _ATTR.size:
        length, kind = _ATTR.unpack_from(attrs)
        value = attrs[_ATTR.size : length]
        if kind == ATTR_NAME:
            name = value.rstrip(b"\0").decode(errors="replace")
        elif kind == ATTR_PEER:
            peer = int.from_bytes(value[:4], "little")
        attrs = attrs[max((length + 3) & ~3, _ATTR.size) :]
    return inode, name, peer
