"""What `ramherd exec -- /bin/true` takes beside `/bin/true`, in turns, and its medians.

`start` is until the program runs (it writes the time), `all` until its end and the clearing of
its pen as well. Bytecode is kept, as in an installed package. Both start from this process, in
turns. A busy machine makes the difference larger as well, so its load and the time of a bare
interpreter are printed with the result: 10 ms of it are in every number.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 100
ALLOWED_MS = 60.0
CLOCK = [sys.executable, "-I", "-S", "-c", "import time; print(time.monotonic())"]


def run(command: list[str], env: dict[str, str]) -> float:
    """Milliseconds from start to end."""
    start = time.monotonic()
    subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL)
    return (time.monotonic() - start) * 1000


def start(command: list[str], env: dict[str, str]) -> float:
    """Milliseconds until the program says the time."""
    begin = time.monotonic()
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return (float(done.stdout) - begin) * 1000


def make_prefixes() -> dict[str, list[str]]:
    ramherd = [str(Path(sys.executable).with_name("ramherd")), "exec", "--pen"]
    pens = ["cgroup1", "polling"] if os.access("/sys/fs/cgroup/memory", os.W_OK) else ["polling"]
    nothing = [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"]
    return {"bare": [], "python": nothing, **{pen: [*ramherd, pen, "--"] for pen in pens}}


def measure(rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    prefixes = make_prefixes()
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in prefixes}
    with tempfile.TemporaryDirectory() as place:
        env = {
            **os.environ, "XDG_STATE_HOME": place, "RAMHERD_RUNTIME_DIR": f"{place}/run",
            "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{place}/bytecode",
        }  # fmt: skip
        for prefix in prefixes.values():
            run([*prefix, "/bin/true"], env)
        for _round in range(rounds):
            for name, prefix in prefixes.items():
                times[name][0].append(start([*prefix, *CLOCK], env))
                times[name][1].append(run([*prefix, "/bin/true"], env))
    return times


def main() -> int:
    times = measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    middle = {name: [statistics.median(values) for values in both] for name, both in times.items()}
    least = {name: [min(values) for values in both] for name, both in times.items()}
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"ms beyond the bare program, medians of {len(times['bare'][0])} (least), {load}")
    for name in list(times)[1:]:
        over = [at - bare for at, bare in zip(middle[name], middle["bare"], strict=True)]
        best = [at - bare for at, bare in zip(least[name], least["bare"], strict=True)]
        print(f"{name:8} start {over[0]:5.1f} ({best[0]:.1f})   all {over[1]:5.1f} ({best[1]:.1f})")
    worst = max(middle[name][0] - middle["bare"][0] for name in list(times)[2:])
    print(
        f"allowed for the start: {ALLOWED_MS} ms: {'kept' if worst <= ALLOWED_MS else 'EXCEEDED'}"
    )
    return 0 if worst <= ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
