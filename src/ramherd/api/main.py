"""The API's process: started by the service with one JSON object, ends when the service does.

`lifeline` is one end of a socket to the service: a byte wakes it, its end is ours.
"""

import json
import os
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

from ramherd.api.auth import make_token
from ramherd.api.routes import Api
from ramherd.api.server import Listener, Server
from ramherd.core.errors import RamherdError, UsageError
from ramherd.jobs.reader import Defaults
from ramherd.store.connect import open_store
from ramherd.system.unix_socket import listen


def main() -> None:
    """One line of error, as everywhere."""
    try:
        run()
    except RamherdError as error:
        print(f"ramherd: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def run() -> None:
    given = json.loads(sys.argv[1])
    # The service ends us by its lifeline; Ctrl-C is for it to understand.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    state, runtime = Path(given["state"]), Path(given["runtime"])
    lifeline = given["lifeline"]
    with closing(open_store(state)) as store:
        api = Api(
            store, state, runtime, lambda: send_byte(lifeline, b"w"), Defaults(**given["defaults"])
        )
        listeners = [Listener(listen(runtime / "api.sock"))]
        if given["port"] is not None:
            listeners.append(listen_on_loopback(given["port"], runtime))
        with closing(Server(api.answer, listeners, lifeline)) as server:
            send_byte(lifeline, b"r")
            server.serve()


def send_byte(lifeline: int, what: bytes) -> None:
    try:
        os.write(lifeline, what)
    except BlockingIOError:  # it has not looked at the last ones yet
        pass
    except BrokenPipeError:  # it is gone, and its next start looks
        pass


def listen_on_loopback(port: int, runtime: Path) -> Listener:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
    made.listen(16)
    return Listener(made, made.getsockname()[1], make_token(runtime / "token"))
