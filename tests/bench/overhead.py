"""What ramherd costs beside a bare subprocess: /bin/true, both in the same run, in turns.

`make bench`. A lone time says little on a busy machine: each round measures all of them, and
the medians of the rounds are compared.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
RUNS = 200
# A run may cost so much more than a bare subprocess.
ALLOWED_MS = 5.0


def bare() -> float:
    """Milliseconds for one `/bin/true`, one after the other."""
    start = time.perf_counter()
    for _run in range(RUNS):
        subprocess.run(["/bin/true"], check=True)
    return (time.perf_counter() - start) / RUNS * 1000


def with_ramherd(pen: str, state: Path) -> tuple[float, dict[str, float]]:
    """The same through one herd; its own start and end are left out by `wall_s`."""
    env = {**os.environ, "XDG_STATE_HOME": str(state), "RAMHERD_RUNTIME_DIR": str(state / "run")}
    command = [sys.executable, "-m", "ramherd", "run", "--json", "--max-parallel", "1"]
    done = subprocess.run(
        [*command, "--pen", pen, "--", "/bin/true"],
        input="x\n" * RUNS, env=env, text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    summary = json.loads(done.stdout)
    return summary["wall_s"] / RUNS * 1000, summary["supervisor"]


def main() -> int:
    pens = ["cgroup1", "polling"] if os.access("/sys/fs/cgroup/memory", os.W_OK) else ["polling"]
    times: dict[str, list[float]] = {name: [] for name in ("bare subprocess", *pens)}
    costs: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as state:
        for _round in range(ROUNDS):
            times["bare subprocess"].append(bare())
            for pen in pens:
                ms, costs[pen] = with_ramherd(pen, Path(state))
                times[pen].append(ms)
    base = statistics.median(times["bare subprocess"])
    print(f"{RUNS} runs of /bin/true one after the other, median of {ROUNDS} rounds")
    print(f"{'':16} {'ms a run':>9} {'overhead ms':>12} {'supervisor MB':>13} {'keeper MB':>13}")
    for name, values in times.items():
        ms, cost = statistics.median(values), costs.get(name)
        rss = [cost["rss_peak_bytes"], cost["keeper_rss_peak_bytes"]] if cost else []
        print(f"{name:16} {ms:9.2f} {ms - base:12.2f}", *(f"{size / 1e6:13.1f}" for size in rss))
    over = statistics.median(times[pens[0]]) - base
    verdict = "kept" if over <= ALLOWED_MS else "EXCEEDED"
    print(f"allowed with {pens[0]}: {ALLOWED_MS} ms: {verdict}")
    return 0 if over <= ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
