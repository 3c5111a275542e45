"""Measured sizes of subagents, by project: a small file in the state directory.

Read without a lock and replaced as a whole: if two sessions write at a time, one of the sizes is
lost.
"""

from __future__ import annotations

import json
import os
import time

from ramherd.system.files import open_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "subagents.json"
# For a project without sizes.
DEFAULT_BYTES = 128 << 20
PROJECTS, RECENT = 64, 16
# Fewer are not enough: a new subagent holds 8 MB, and its tools come and go.
ENOUGH = 4
LEAST_BYTES = 32 << 20
# A subagent is measured when hooks run, mostly not at its peak.
MARGIN = 1.25


def estimate_bytes(state: str, project: str) -> int | None:
    """The expected size of the next subagent: the largest of the recent ones, with a margin."""
    most = [int(past["most_bytes"]) for past in read(state).get(project, [])]
    if len(most) < ENOUGH:
        return None
    return max(int(MARGIN * max(most)), LEAST_BYTES)


def learn(state: str, project: str, past: dict[str, Any]) -> None:
    """Adds a subagent of this project; the projects not seen for longest are removed."""
    known = read(state)
    recent = [*known.pop(project, []), {**past, "at_s": int(time.time())}]
    known[project] = recent[-RECENT:]
    kept = dict(list(known.items())[-PROJECTS:])
    path = f"{state}/{NAME}"
    fresh = f"{path}.{os.getpid()}"
    fd = open_private(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(fd, "w") as file:
        json.dump(kept, file, separators=(",", ":"))
    os.replace(fresh, path)


def read(state: str) -> dict[str, list[dict[str, Any]]]:
    """A file that does not parse is learned again."""
    try:
        with open(f"{state}/{NAME}") as file:
            known = json.load(file)
        for recent in known.values():
            for past in recent:
                int(past["most_bytes"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return dict(known)
