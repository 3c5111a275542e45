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
import time

# A browser's stand-in: its server is its only client, it has a profile, and it is busy.
BROWSER = """
import socket, sys, time
profile = open(sys.argv[1] + ".profile", "w")
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
while True:
    sum(range(300000)); time.sleep(0.2)
"""


def start_browser(program: str) -> socket.socket:
    env = {**os.environ, "PYTHONHOME": sys.base_prefix}
    browser = subprocess.Popen(
        [program, "-S", "-c", BROWSER, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        env=env,
    )  # fmt: skip
    assert browser.stdout is not None
    return socket.create_connection(("127.0.0.1", int(browser.stdout.readline())))


def spin() -> None:
    """As many do on the end of their stdin; a tenth of a core is enough to see it."""
    while True:
        sum(range(300000))
        time.sleep(0.1)


def main() -> None:
    if name := os.environ.get("ZOO_NAME"):
        ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    if os.environ.get("ZOO_CHILD"):
        subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
    if path := os.environ.get("ZOO_LISTEN"):
        listener = socket.create_server(("127.0.0.1", 0))
        with open(path, "w") as file:
            file.write(str(listener.getsockname()[1]))
    if command := os.environ.get("ZOO_JOB"):
        subprocess.Popen(["sh", "-c", f"{command}; true"], stdin=subprocess.DEVNULL)
    kept = start_browser(program) if (program := os.environ.get("ZOO_BROWSER")) else None
    for line in sys.stdin:
        reply = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {}}
        print(json.dumps(reply), flush=True)
    if os.environ.get("ZOO_SPIN") or kept is not None:
        spin()
    while True:
        signal.pause()
