"""The process of the API: the service starts it with one JSON object, and it ends with the service.

`lifeline` is one end of a socket to the service: a byte wakes the service, and when the service
closes its end, this process ends. It is started without site, so `path` has the directories in
which the service finds its modules.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.extend(json.loads(sys.argv[1])["path"])

from ramherd.api.asgi import make_api
from ramherd.api.listener import listen_for_user, listen_on_loopback
from ramherd.api.server import ApiServers, send
from ramherd.api.submission import Submission
from ramherd.core.errors import RamherdError
from ramherd.jobs.reader import Defaults
from ramherd.store.connect import open_store


def main() -> None:
    """Prints an error as one line, like the command line."""
    try:
        asyncio.run(run())
    except RamherdError as error:
        print(f"ramherd: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    # Threads may still wait for a lock of the store.
    sys.stderr.flush()
    os._exit(0)


async def run() -> None:
    given = json.loads(sys.argv[1])
    # The lifeline ends this process; Ctrl-C is for the service.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Errors of a request are in its response, and our own errors are printed once.
    logging.disable()
    state, runtime, lifeline = Path(given["state"]), Path(given["runtime"]), given["lifeline"]
    open_store(state).close()
    rules = Submission(state, Defaults(**given["defaults"]))
    api = make_api(state, runtime, rules, lambda: send(lifeline, b"w"))
    listeners = [listen_for_user(runtime)]
    if given["port"] is not None:
        listeners.append(listen_on_loopback(given["port"], runtime))
    await ApiServers(api, listeners, lifeline).serve()
    api.threads.close()


main()
