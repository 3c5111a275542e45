"""What a hook call costs when there is room: from the start of the shell that Claude calls until it
has ended, over a bare interpreter (`python3 -I -c pass`), both in turns.

Bytecode is kept, as in an installed package. The limit is on the median of wall time on a quiet
machine; above one process for each core the scheduler is measured, and CPU time is judged instead.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ramherd.hook.claude_settings import hook_command

ROUNDS = 30
ALLOWED_MS = 100.0
BARE = "python3 -I -c pass"
EVENTS: dict[str, dict[str, object]] = {
    "SessionStart": {},
    "PreToolUse": {"tool_name": "Agent"},
    "SubagentStart": {"agent_id": "a", "agent_type": "general-purpose"},
    "SubagentStop": {"agent_id": "a", "agent_type": "general-purpose"},
    "Stop": {"background_tasks": []},
}


def call(command: str, text: str, env: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of wall and of CPU time."""
    cpu = children_cpu_s()
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=env, input=text, text=True, check=True, capture_output=True
    )
    took = time.monotonic() - began
    assert "hook does not work" not in done.stdout, done.stdout
    return took * 1000, (children_cpu_s() - cpu) * 1000


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(rounds: int) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (BARE, *EVENTS)}
    with tempfile.TemporaryDirectory() as place:
        env = {
            **os.environ, "XDG_STATE_HOME": place, "RAMHERD_RUNTIME_DIR": f"{place}/run",
            "XDG_CONFIG_HOME": place, "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": f"{place}/bytecode", "CLAUDE_PROJECT_DIR": place,
        }  # fmt: skip
        Path(f"{place}/run").mkdir(mode=0o700)
        for number in range(rounds + 1):
            base = {"session_id": "bench", "cwd": place, "tool_use_id": f"t{number}"}
            found = {BARE: call(f"{sys.executable} -I -c pass", "", env)}
            for event, more in EVENTS.items():
                text = json.dumps({**base, "hook_event_name": event, **more})
                found[event] = call(hook_command(60), text, env)
            if number:  # the first one writes the bytecode
                for name, value in found.items():
                    times[name].append(value)
    return times


def main() -> int:
    times = measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    judged = "CPU" if is_busy else "wall"
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"ms for one hook call, median of {len(times[BARE])}, {load}: {judged} time is judged")
    wall, cpu = ({name: median(values, at) for name, values in times.items()} for at in (0, 1))
    over = {name: took - wall[BARE] for name, took in wall.items()}
    cpu_over = {name: took - cpu[BARE] for name, took in cpu.items()}
    for name in times:
        print(
            f"{name:20} wall {wall[name]:6.1f} (over bare {over[name]:6.1f})   "
            f"cpu {cpu[name]:6.1f} (over bare {cpu_over[name]:6.1f})"
        )
    worst = max((cpu_over if is_busy else over).values())
    is_kept = worst <= ALLOWED_MS
    result = "kept" if is_kept else "EXCEEDED"
    print(f"slowest: {worst:.1f} ms over {BARE}, allowed {ALLOWED_MS:.0f} ms: {result}")
    return 0 if is_kept else 1


def median(values: list[tuple[float, float]], at: int) -> float:
    return statistics.median(value[at] for value in values)


if __name__ == "__main__":
    sys.exit(main())
