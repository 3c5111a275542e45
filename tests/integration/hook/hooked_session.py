"""Stands for a claude: starts hooks as it is told, all at once, and says how each ended.

One JSON object a line in, `{"name", "command", "event"}`, and one a line out for each hook that
ended; `{"stop": NAME}` sends TERM to one.
"""

import json
import os
import subprocess
import sys
import threading


def watch(name: str, child: "subprocess.Popen[str]", event: object) -> None:
    out, err = child.communicate(json.dumps(event) if not isinstance(event, str) else event)
    line = json.dumps({"name": name, "code": child.returncode, "out": out, "err": err})
    os.write(1, f"{line}\n".encode())


def main() -> None:
    children: dict[str, subprocess.Popen[str]] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if "stop" in told:
            os.killpg(children[told["stop"]].pid, 15)
            continue
        child = children[told["name"]] = subprocess.Popen(
            ["/bin/sh", "-c", told["command"]], text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        threading.Thread(target=watch, args=(told["name"], child, told["event"])).start()


main()
