"""Who talks to a container engine, from what the kernel says of unix sockets."""

import os
import struct
from itertools import islice
from pathlib import Path

import pytest

from ramherd.measure import container_clients as engines
from ramherd.measure.container_clients import find_client, read_engine_clients
from ramherd.system.procfs import read_descriptors
from ramherd.system.unix_diag import (
    ATTR_NAME,
    ATTR_PEER,
    NLMSG_DONE,
    SOCK_DIAG_BY_FAMILY,
    parse_messages,
    parse_socket,
    read_unix_sockets,
)


def padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def message(kind: int, body: bytes) -> bytes:
    return padded(struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body)


def attr(kind: int, value: bytes) -> bytes:
    return padded(struct.pack("=HH", 4 + len(value), kind) + value)


def socket_body(inode: int, *attrs: bytes) -> bytes:
    return struct.pack("=BBBBI8x", 1, 1, 1, 0, inode) + b"".join(attrs)


def test_a_datagram_holds_several_messages() -> None:
    """Each padded to four bytes; the padding is not part of it."""
    data = message(20, b"abcde") + message(20, b"") + message(NLMSG_DONE, b"\0\0\0\0")

    assert list(parse_messages(data)) == [(20, b"abcde"), (20, b""), (3, b"\0\0\0\0")]
    assert list(parse_messages(b"")) == []


def test_the_rest_of_a_message_that_was_cut_is_no_message() -> None:
    """Less than a header says nothing."""
    assert list(parse_messages(message(20, b"abcd") + b"\x20\0\0")) == [(20, b"abcd")]


def test_a_length_that_cannot_be_does_not_go_on_for_ever() -> None:
    """Shorter than its own header."""
    assert len(list(islice(parse_messages(bytes(32)), 100))) < 100


@pytest.mark.parametrize(
    ("attrs", "name", "peer"),
    [
        ((), "", 0),
        ((attr(ATTR_NAME, b"/run/docker.sock\0"),), "/run/docker.sock", 0),
        ((attr(ATTR_PEER, struct.pack("=I", 77)),), "", 77),
        ((attr(ATTR_PEER, struct.pack("=I", 77)), attr(9, b"?"), attr(ATTR_NAME, b"/s")), "/s", 77),
        ((attr(ATTR_NAME, b"\0abstract"),), "\0abstract", 0),
        ((attr(ATTR_NAME, b"/\xff"),), "/\ufffd", 0),
        ((b"\0\0\0\0", attr(ATTR_NAME, b"/s")), "/s", 0),
    ],
)
def test_a_socket_is_its_inode_its_name_and_its_peer(
    attrs: tuple[bytes, ...], name: str, peer: int
) -> None:
    """In any order, with attributes that we do not know, or none."""
    assert parse_socket(socket_body(42, *attrs)) == (42, name, peer)


def test_messages_are_read_as_the_kernel_sends_them() -> None:
    """The padding of a name of odd length does not move what follows."""
    bodies = [
        socket_body(1, attr(ATTR_NAME, b"/a/b"), attr(ATTR_PEER, struct.pack("=I", 2))),
        socket_body(2, attr(ATTR_NAME, b"/a/bc"), attr(ATTR_PEER, struct.pack("=I", 1))),
    ]
    data = b"".join(message(SOCK_DIAG_BY_FAMILY, body) for body in bodies)

    assert [parse_socket(body) for _kind, body in parse_messages(data)] == [
        (1, "/a/b", 2),
        (2, "/a/bc", 1),
    ]


def test_a_client_is_the_other_end_of_an_engines_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the end of its name; an end without a peer has hung up."""
    sockets = [
        (10, "/run/docker.sock", 11),
        (11, "", 10),
        (20, "/run/user/1000/podman/podman.sock", 21),
        (30, "/run/dbus/system_bus_socket", 31),
        (40, "/run/docker.sock", 0),
        (50, "/run/docker.sock.bak", 51),
    ]
    monkeypatch.setattr(engines, "read_unix_sockets", lambda: iter(sockets))

    assert read_engine_clients() == {
        11: "/run/docker.sock",
        21: "/run/user/1000/podman/podman.sock",
    }


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Process 5 holds a file and socket 11, process 6 only a socket of a like number."""
    for pid, links in {5: ["/dev/null", "socket:[11]"], 6: ["socket:[111]", "pipe:[11]"]}.items():
        (tmp_path / f"{pid}/fd").mkdir(parents=True)
        for fd, target in enumerate(links):
            (tmp_path / f"{pid}/fd/{fd}").symlink_to(target)
    return tmp_path


def test_a_client_is_found_by_the_inode_that_it_holds(proc: Path) -> None:
    """Whichever process of the run it is."""
    clients = {11: "/run/docker.sock"}

    assert find_client([6, 5], clients, proc) == "/run/docker.sock"
    assert find_client([6], clients, proc) == ""
    assert find_client([5], {}, proc) == ""
    assert find_client([], clients, proc) == ""


def test_a_process_that_is_gone_talks_to_nobody(proc: Path) -> None:
    """Nor one whose descriptors are not ours to see, or go while we look."""
    (proc / "7/fd").mkdir(parents=True)
    (proc / "7/fd/0").write_text("no link")

    assert find_client([99, 7, 5], {11: "/s"}, proc) == "/s"
    assert not read_descriptors(7, proc)


def test_our_own_sockets_are_seen_with_their_peers() -> None:
    """From the kernel of this machine, where it has sock_diag."""
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        inodes = [os.fstat(one.fileno()).st_ino for one in (ours, theirs)]
        peers = {inode: peer for inode, _name, peer in read_unix_sockets()}
    if not peers:
        pytest.skip("this kernel has no sock_diag")

    assert (peers[inodes[0]], peers[inodes[1]]) == (inodes[1], inodes[0])
