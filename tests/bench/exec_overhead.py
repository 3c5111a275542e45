"""What `ramherd exec -- /bin/true` takes beside `/bin/true`, in turns, and its medians.

`start` is until the program runs (it prints the time), `all` until its end and the clearing of its
pen as well. Bytecode is kept, as in an installed package. Each round starts every variant once from
this process, so that all meet the same machine. A busy machine makes the differences larger: its
load and the time of a bare interpreter, which is part of every figure, are printed with the result.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 30
ALLOWED_MS = 120.0
BARE = "bare"
CLOCK = [sys.executable, "-I", "-S", "-c", "import time; print(time.monotonic())"]
# Milliseconds by what was measured: `start`, `all`.
Times = dict[str, list[float]]


def run(command: list[str], env: dict[str, str]) -> float:
    """Milliseconds from start to end."""
    start = time.monotonic()
    subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL)
    return (time.monotonic() - start) * 1000


def start(command: list[str], env: dict[str, str]) -> float:
    """Milliseconds until the program prints the time."""
    begin = time.monotonic()
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return (float(done.stdout) - begin) * 1000


def make_prefixes() -> dict[str, list[str]]:
    ramherd = [str(Path(sys.executable).with_name("ramherd")), "exec", "--pen"]
    pens = ["cgroup1", "polling"] if os.access("/sys/fs/cgroup/memory", os.W_OK) else ["polling"]
    nothing = [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"]
    return {BARE: [], "python": nothing, **{pen: [*ramherd, pen, "--"] for pen in pens}}


def measure(rounds: int) -> dict[str, Times]:
    prefixes = make_prefixes()
    times: dict[str, Times] = {name: {"start": [], "all": []} for name in prefixes}
    with tempfile.TemporaryDirectory() as place:
        env = {
            **os.environ, "XDG_STATE_HOME": place, "RAMHERD_RUNTIME_DIR": f"{place}/run",
            "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{place}/bytecode",
        }  # fmt: skip
        for prefix in prefixes.values():
            run([*prefix, "/bin/true"], env)
        for _round in range(rounds):
            for name, prefix in prefixes.items():
                times[name]["start"].append(start([*prefix, *CLOCK], env))
                times[name]["all"].append(run([*prefix, "/bin/true"], env))
    return times


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    times = measure(rounds)
    bare = times.pop(BARE)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"ms beyond the bare program, medians of {rounds} (least), {load}")
    worst = 0.0
    for name, measured in times.items():
        texts = []
        for what, values in measured.items():
            over = statistics.median(values) - statistics.median(bare[what])
            texts.append(f"{what} {over:5.1f} ({min(values) - min(bare[what]):.1f})")
            worst = max(worst, over)
        print(f"{name:8} {'   '.join(texts)}")
    is_kept = worst <= ALLOWED_MS
    print(f"limit {ALLOWED_MS:.0f} ms: {'kept' if is_kept else 'EXCEEDED'} ({worst:.1f} ms)")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
