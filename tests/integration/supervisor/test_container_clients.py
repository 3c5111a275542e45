"""Containers that an agent starts through an engine escape its pen: that is seen and said."""

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import Ramherd

CLIENT = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
link.recv(1)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[str]:
    """Something that listens like a container engine, and answers after a while."""
    path = str(tmp_path / "docker.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve() -> None:
        client, _address = listener.accept()
        with client:
            client.settimeout(1.5)
            try:
                client.recv(1)
            except TimeoutError:
                client.send(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    yield path
    thread.join()
    listener.close()


def test_a_run_that_talks_to_an_engine_is_warned_of(each_ramherd: Ramherd, engine: str) -> None:
    """Once, with the socket; the run itself is left alone."""
    command = [sys.executable, "-I", "-S", "-c", CLIENT, engine]
    summary = each_ramherd.json([{"name": "builder", "command": command}])
    assert summary["done"] == 1, summary["lines"]
    warnings = [line for line in summary["lines"].splitlines() if " warning " in line]
    assert len(warnings) == 1
    assert f"builder: uses {engine}" in warnings[0]
