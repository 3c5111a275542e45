"""A zoo of some 510 real processes in a namespace of their own, and what `ramherd reap` does in it.

    python tests/e2e/zoo/zoo.py [--json]        as root, or where users may make namespaces

Everything is labelled as it is made, `orphan` or `keep`. Then `ramherd reap --stray-grace 0 --yes`
runs, and the labels are compared with what is still there. The namespace ends with its process 1,
and with it everything inside.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from e2e.strays.sessions import read_command
from e2e.zoo.agents import agents
from e2e.zoo.explanations import find_unexplained
from e2e.zoo.namespace import call, in_namespace
from e2e.zoo.place import make_place
from e2e.zoo.species import ALL, Zoo, await_, labelled

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
Herd = dict[tuple[int, int], str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(inside(Path(options.inside))), flush=True)
        return 0
    figures = in_namespace(__file__, "--inside")
    print(json.dumps(figures) if options.json else render(figures))
    is_good = not figures["wrong"] and not figures["unexplained"]
    return 0 if is_good and figures["recall"] >= 0.98 else 1


def inside(root: Path) -> dict[str, Any]:
    began_s = time.monotonic()
    zoo = Zoo(make_place(root))
    for species in (agents, *ALL):
        species(zoo)
    await_(is_settled, "servers that end by themselves are gone")
    reuse_a_pid(zoo)
    made: Herd = {(pid, start): label for pid, start, label in labelled()}
    commands = {proc: read_command(proc[0]) for proc in made}
    made_s = time.monotonic() - began_s
    zoo.place.complete.touch()
    told = call("reap", "--stray-grace", "0", "--yes")
    left = {(pid, start) for pid, start, _label in labelled()}
    # What is at work has a second in which to show it.
    time.sleep(1)
    unexplained = find_unexplained(made, told["ended"], call("ps")["rows"])
    took = {"made_s": round(made_s, 1), "all_s": round(time.monotonic() - began_s, 1)}
    return compare(made, commands, left, told) | took | {"unexplained": unexplained}


def is_settled() -> bool:
    """Twice the same, but for the steps of builds, or somebody is just going."""
    first = settled()
    time.sleep(0.3)
    return first == settled()


def settled() -> set[tuple[int, int, str]]:
    return {one for one in labelled() if not one[2].endswith("-build")}


def reuse_a_pid(zoo: Zoo) -> None:
    """An orphan is seen, ends, and its pid is given to one that is wanted."""
    program = [zoo.place.program("gopls"), "1000"]
    pid = zoo.cut_off("orphan:reused", program)
    call("ps")
    old = zoo.held.pop()
    old.kill()
    old.wait()
    LAST_PID.write_text(str(pid - 1))
    new = zoo.popen("keep:reused", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert new.pid == pid, f"wanted pid {pid}, got {new.pid}"
    zoo.held.append(new)


def compare(
    made: Herd, commands: Herd, left: set[tuple[int, int]], told: dict[str, Any]
) -> dict[str, Any]:
    orphans = {proc for proc, label in made.items() if label.startswith("orphan:")}
    ended = {(row["pid"], row["start_ticks"]) for row in told["ended"]}
    # The steps of a build end by themselves.
    steps = {proc for proc in set(made) - ended if made[proc].endswith("-build")}
    missed, wrong = orphans & left, set(made) - orphans - left - steps
    return {
        "processes": len(made),
        "orphans": len(orphans),
        "recall": round(1 - len(missed) / len(orphans), 4),
        "missed": sorted(made[proc] for proc in missed),
        "wrong": sorted(
            f"{made[proc]}: {commands[proc]} ({'ended' if proc in ended else 'gone'})"
            for proc in wrong
        ),
        "species": dict(sorted(Counter(made.values()).items())),
        "ended": len(told["ended"]),
    }


def render(figures: dict[str, Any]) -> str:
    lines = [f"{count:5}  {label}" for label, count in figures["species"].items()]
    lines += [
        f"{figures['processes']} processes in {figures['made_s']} s, {figures['orphans']} orphans",
        f"recall {figures['recall']:.2%}, {len(figures['wrong'])} wrong kills",
        *(f"missed: {label}" for label in figures["missed"]),
        *(f"wrong: {label}" for label in figures["wrong"]),
        *(f"unexplained: {what}" for what in figures["unexplained"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
