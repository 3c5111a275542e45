"""A small MCP server of the kind that ignores the end of its stdin. Put into an environment of
its own by `zoo.py`, with the metadata of a distribution that requires the SDK.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys


def main() -> None:
    if name := os.environ.get("ZOO_NAME"):
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    if os.environ.get("ZOO_CHILD"):
        subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
    if path := os.environ.get("ZOO_LISTEN"):
        listener = socket.create_server(("127.0.0.1", 0))
        with open(path, "w") as file:
            file.write(str(listener.getsockname()[1]))
    for line in sys.stdin:
        reply = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {}}
        print(json.dumps(reply), flush=True)
    while True:
        signal.pause()
