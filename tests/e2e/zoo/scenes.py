"""Small scenes for `ramherd reap`, each in a namespace of its own: `python scenes.py NAME DIR`."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from e2e.zoo.namespace import call
from e2e.zoo.place import make_place
from e2e.zoo.species import Zoo, await_

Scene = dict[str, Any]


def grace(zoo: Zoo) -> Scene:
    """A dry run, a grace that is not over, then one that is."""
    pid = zoo.cut_off("orphan", [zoo.place.program("gopls"), "1000"])
    dry = call("reap", "--stray-grace", "0")
    lived = [is_alive(pid)]
    waiting = call("reap", "--yes")
    lived.append(is_alive(pid))
    done = call("reap", "--stray-grace", "0", "--yes")
    return {"pid": pid, "dry": dry, "lived": [*lived, is_alive(pid)], "waiting": waiting,
            "done": done, "events": read_events(zoo)}  # fmt: skip


def stubborn(zoo: Zoo) -> Scene:
    """One that ignores TERM, one that is stopped, one that forks whenever it is told to end."""
    os.environ["RAMHERD_GRACE"] = "1s"
    code = f"import signal; signal.signal(15, signal.SIG_IGN)\n{SERVE}"
    again = f"import os, signal\n{RESPAWN}{SERVE}"
    pids = {
        "ignores": start_server(zoo, code),
        "stopped": start_server(zoo, SERVE),
        "respawns": start_server(zoo, again),
    }
    os.kill(pids["stopped"], signal.SIGSTOP)
    done = call("reap", "--stray-grace", "0", "--yes")
    left = [pid for pid in zoo_pids() if pid not in (1, os.getpid())]
    return {"pids": pids, "done": done, "left": left}


def named(zoo: Zoo) -> Scene:
    """A suspect daemon, and an agent on purpose."""
    program = zoo.place.program("watchman")
    suspect = zoo.popen("keep", [program, "1000"], stdin=subprocess.DEVNULL).pid
    agent = zoo.popen("keep", [zoo.place.program("claude"), "1000"], stdin=subprocess.DEVNULL).pid
    plain = call("reap", "--stray-grace", "0", "--yes")
    lived = is_alive(suspect)
    done = call("reap", "--suspect", str(suspect), str(agent), "4000000", "--yes")
    return {"suspect": suspect, "agent": agent, "plain": plain, "lived": lived, "done": done,
            "alive": [is_alive(suspect), is_alive(agent)]}  # fmt: skip


def from_inside(zoo: Zoo) -> Scene:
    """`ramherd reap` called by a server that is an orphan itself."""
    reap = f"{sys.executable} -m ramherd reap --stray-grace 0 --yes --json"
    script = f"{reap} > {zoo.place.root}/told; sleep 1000"
    shell = zoo.place.root / "clangd"
    shutil.copy("/bin/bash", shell)
    pid = zoo.cut_off("orphan", [str(shell), "-c", script])
    told = zoo.place.root / "told"
    await_(lambda: told.exists() and told.read_text().endswith("\n"), "the reap to end")
    return {"alive": is_alive(pid), "told": json.loads(told.read_text())}


def recorded(zoo: Zoo) -> Scene:
    """Seen by `ps` below its agent; the agent dies; nothing else says whose it was."""
    agent = zoo.place.subreaper("claude")
    code = "import subprocess, signal\n"
    code += "child = subprocess.Popen(['sleep', '1000'], stdin=subprocess.DEVNULL,"
    code += " stdout=subprocess.PIPE, start_new_session=True)\nprint(child.pid, flush=True)\n"
    code += "signal.pause()\n"
    client = zoo.popen(
        "keep", [agent, "-S", "-c", code], env={"PYTHONHOME": sys.base_prefix},
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    before = call("ps")
    client.kill()
    client.wait()
    done = call("reap", "--stray-grace", "0", "--yes")
    return {"pid": pid, "before": before, "done": done, "alive": is_alive(pid)}


SERVE = "import sys, signal\nprint('up', flush=True)\nwhile True: signal.pause()\n"
RESPAWN = """
def again(number, frame):
    if os.fork():
        os._exit(0)
    while True: signal.pause()
signal.signal(15, again)
"""


def start_server(zoo: Zoo, code: str) -> int:
    """A Python under the name of a language server; it is up when it has said so."""
    program = zoo.place.subreaper("rust-analyzer")
    process = zoo.popen(
        "orphan", [program, "-S", "-c", code], env={"PYTHONHOME": sys.base_prefix},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    process.stdin.close()
    process.stdout.close()
    zoo.held.append(process)
    return process.pid


def zoo_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and is_alive(int(entry))]


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def read_events(zoo: Zoo) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(zoo.place.root / "state/ramherd/ramherd.db")) as db:
        rows = db.execute("SELECT reason FROM events WHERE kind = 'reaped'").fetchall()
    return [json.loads(reason) for (reason,) in rows]


SCENES: dict[str, Callable[[Zoo], Scene]] = {
    scene.__name__: scene for scene in (grace, stubborn, named, from_inside, recorded)
}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]](Zoo(make_place(Path(sys.argv[2]))))), flush=True)
