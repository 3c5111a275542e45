"""What a subagent waits for its hook when there is room: from the start of the shell that
Claude calls until it has ended, in turns with a bare interpreter; median, p95 and CPU time.

Bytecode is kept, as in an installed package. A busy machine makes every number larger, the bare
interpreter's too, so its load and that are printed with the result; above one process for each
core it is its scheduler that is measured, and the median of CPU time is judged instead.
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

ROUNDS = 100
ALLOWED_MS = 60.0
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
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ("python", *EVENTS)}
    with tempfile.TemporaryDirectory() as place:
        env = {
            **os.environ, "XDG_STATE_HOME": place, "RAMHERD_RUNTIME_DIR": f"{place}/run",
            "XDG_CONFIG_HOME": place, "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": f"{place}/bytecode", "CLAUDE_PROJECT_DIR": place,
        }  # fmt: skip
        Path(f"{place}/run").mkdir(mode=0o700)
        for number in range(rounds + 1):
            base = {"session_id": "bench", "cwd": place, "tool_use_id": f"t{number}"}
            found = {"python": call(f"{sys.executable} -c pass", "", env)}
            for event, more in EVENTS.items():
                text = json.dumps({**base, "hook_event_name": event, **more})
                found[event] = call(hook_command(60), text, env)
            if number:  # the first one writes the bytecode
                for name, value in found.items():
                    times[name].append(value)
    return times


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def main() -> int:
    times = measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"ms for one hook, {len(times['python'])} rounds, {load}")
    for name, values in times.items():
        wall, cpu = ([value[at] for value in values] for at in (0, 1))
        print(
            f"{name:14} median {statistics.median(wall):5.1f}   p95 {p95(wall):5.1f}   "
            f"least {min(wall):5.1f}   cpu {statistics.median(cpu):5.1f}"
        )
    wall, cpu = ([value[at] for value in times["PreToolUse"]] for at in (0, 1))
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    worst = statistics.median(cpu) if is_busy else p95(wall)
    what = "median of its CPU time (the machine is busy)" if is_busy else "p95 of its time"
    kept = "kept" if worst <= ALLOWED_MS else "EXCEEDED"
    print(f"PreToolUse: {what} {worst:.1f} ms, allowed {ALLOWED_MS:.0f} ms: {kept}")
    return 0 if worst <= ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
