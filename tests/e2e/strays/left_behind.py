"""Two sessions of one real agent, each with three MCP servers and a tool call under way. The first
is killed, `ramherd reap` is called, and what is left is listed. Runs as process 1 of a namespace:

    python left_behind.py AGENT outer|all DIR
"""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from e2e.strays.sessions import (
    SERVERS,
    alive,
    family,
    own_of,
    read_command,
    start,
    three_servers,
)
from e2e.zoo.namespace import call
from e2e.zoo.species import await_
from llm import LLM

# claude refuses to sleep.
SCRIPT = [{"shell": "tail -f /dev/null"}, {"say": "never"}]
PROMPT = "do it [script hang]"


def is_ready(root: int) -> dict[int, str] | None:
    """The tool is at work, and so are the three servers."""
    found = family(root)
    running = [pid for pid in found if str(SERVERS) in read_command(pid)]
    return found if "tail" in found.values() and len(running) >= 3 else None


def main() -> None:
    name, mode, root = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with LLM({"hang": SCRIPT}) as llm:
        started = [
            start(name, root / which, llm.url, PROMPT, three_servers())
            for which in ("killed", "live")
        ]
        killed, live = (
            await_(partial(is_ready, process.pid), f"{name} at work") for process in started
        )
        victims = own_of(name, killed) if mode == "all" else [started[0].pid]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        started[0].wait()
        left = set(killed) & alive()
        told = call("reap", "--stray-grace", "0", "--yes")
        now = alive()
        shown = {row["pid"]: row for row in call("ps")["rows"]}
        survivors = set(killed) & now
        figures = {
            "killed": len(victims), "left": sorted(killed[pid] for pid in left),
            "survivors": sorted(killed[pid] for pid in survivors),
            "spared": sorted({
                one["fact"] for pid in survivors if pid in shown for one in shown[pid]["spared"]
            }),
            "touched": sorted(live[pid] for pid in set(live) - now), "live": len(live),
            "evidence": sorted({row["evidence"][0]["fact"] for row in told["ended"]}),
        }  # fmt: skip
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
