"""The process of the API: the service starts it with one JSON object, and it ends with the service.

`lifeline` is one end of a socket to the service: a byte wakes the service, and when the service
closes its end, this process ends. It is started without site, so the path comes first.
"""

import json
import os
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ramherd.api.auth import make_token, write_token
from ramherd.api.routes import Api
from ramherd.api.server import Listener, Server
from ramherd.core.errors import RamherdError, UsageError
from ramherd.jobs.reader import Defaults
from ramherd.store.connect import open_store
from ramherd.system.unix_socket import listen


def main() -> None:
    """An error is one line, as in the command line."""
    try:
        run()
    except RamherdError as error:
        print(f"ramherd: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def run() -> None:
    given = json.loads(sys.argv[1])
    # The lifeline ends this process; Ctrl-C is for the service.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    state, runtime = Path(given["state"]), Path(given["runtime"])
    lifeline = given["lifeline"]
    with closing(open_store(state)) as store:
        api = Api(
            store, state, runtime, lambda: send(lifeline, b"w"), Defaults(**given["defaults"])
        )
        listeners = [Listener(listen(runtime / "api.sock"))]
        if given["port"] is not None:
            listeners.append(listen_on_loopback(given["port"], runtime))

        def move(message: bytes) -> None:
            api.runtime = Path(os.fsdecode(message.splitlines()[-1]))
            if listen_again(server, api.runtime, listeners[-1].token):
                send(lifeline, b"r")

        with closing(Server(api.answer, listeners, lifeline, move)) as server:
            send(lifeline, b"r")
            server.serve()


def listen_again(server: Server, runtime: Path, token: str) -> bool:
    """The runtime directory was removed, or is another one now: its socket, and the token of the
    port if there is one. False: the service asks again.
    """
    try:
        server.replace(Listener(listen(runtime / "api.sock")))
        if token:
            write_token(runtime / "token", token)
    except OSError as error:
        print(f"ramherd: cannot listen in {runtime}: {error}", file=sys.stderr, flush=True)
        return False
    return True


def send(lifeline: int, message: bytes) -> None:
    try:
        os.write(lifeline, message)
    except BlockingIOError:  # the service has not read the last ones yet
        pass
    except BrokenPipeError:  # it is gone, and reads the store when it starts again
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


main()
