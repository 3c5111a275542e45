"""A subreaper that did not start the servers it inherits: starts a client in a session of its own,
kills it when told to on stdin, and stays. Its arguments are the client's.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    client = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, start_new_session=True)
    assert client.stdout is not None
    client.stdout.readline()
    print("ready", flush=True)
    sys.stdin.readline()
    client.kill()
    client.wait()
    print("killed", flush=True)
    # Ignored children leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
