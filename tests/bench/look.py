"""What `ramherd ps` and `ramherd watch` cost with many processes: CPU time of the whole command.

python tests/bench/look.py [PROCESSES]
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from e2e.zoo.place import make_place

SHARE = 10  # one in so many is an MCP server
VERBS = ("help ps", "ps", "watch --quiet")


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory(prefix="ramherd-look-") as name:
        place = make_place(Path(name))
        program = [place.program("gopls"), "1000"]
        others = wanted - len([entry for entry in os.listdir("/proc") if entry.isdigit()])
        started = [
            subprocess.Popen(
                ["sleep", "1000"] if number % SHARE else program, stdin=subprocess.PIPE
            )
            for number in range(max(others, 0))
        ]
        try:
            costs = {
                verb: sorted(cost_of(name, *verb.split()) for _try in range(7)) for verb in VERBS
            }
        finally:
            for process in started:
                process.kill()
                process.wait()
    print(f"with {wanted} processes, {max(others, 0) // SHARE} of them servers:")
    for verb, found in costs.items():
        print(
            f"  ramherd {verb}: {found[0]:.0f} ms of CPU at best, {found[3]:.0f} ms in the middle"
        )


def cost_of(directory: str, *verb: str) -> float:
    """The best of some is nearest to what it costs on a quiet machine."""
    env = {
        **os.environ, "XDG_STATE_HOME": f"{directory}/state",
        "RAMHERD_RUNTIME_DIR": f"{directory}/runtime",
    }  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "ramherd", *verb], env=env, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    main()
