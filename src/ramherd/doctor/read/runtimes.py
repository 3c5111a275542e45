"""What each node really gets: node itself is asked, once for each binary."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ramherd.doctor.facts import Node
from ramherd.doctor.read.host import Host

QUESTION = (
    "console.log(JSON.stringify([process.version,"
    "require('v8').getHeapStatistics().heap_size_limit]))"
)
# It answers in 0.1 s; a machine that swaps takes longer, and nobody should wait for that.
ANSWER_S = 1.0
MOST = 3


def find_programs(host: Host, name: str) -> Iterator[Path]:
    """Those of that name in PATH, each real file once, the first one first."""
    seen = set()
    for directory in host.env.get("PATH", os.defpath).split(os.pathsep):
        path = Path(directory or ".") / name
        if os.access(path, os.X_OK) and path.is_file() and (real := path.resolve()) not in seen:
            seen.add(real)
            yield path


def read_nodes(host: Host) -> list[Node]:
    return [ask_node(str(path), host) for path in list(find_programs(host, "node"))[:MOST]]


def ask_node(path: str, host: Host) -> Node:
    try:
        done = subprocess.run(
            [path, "-e", QUESTION], env=dict(host.env), capture_output=True, timeout=ANSWER_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Node(path, error=f"no answer within {ANSWER_S:g} s")
    except OSError as error:
        return Node(path, error=str(error.strerror))
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return Node(path, error=lines[0] if lines else f"exit status {done.returncode}")
    return parse_answer(path, done.stdout.decode(errors="replace"))


def parse_answer(path: str, text: str) -> Node:
    """The last line: what NODE_OPTIONS makes it load may print before."""
    try:
        version, heap = json.loads(text.strip().splitlines()[-1])
        return Node(path, str(version), int(heap))
    except (ValueError, TypeError, IndexError):
        return Node(path, error="an answer that does not parse")
