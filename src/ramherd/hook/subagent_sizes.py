"""What subagents were seen to hold, by project: a small file in the state directory.

Read without a lock and replaced as a whole: of two sessions that write at a time, one learns
its subagent the next time.
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
# Of a project that nothing is known of yet.
DEFAULT_BYTES = 128 << 20
PROJECTS, RECENT = 64, 16
# A few say nothing yet; a subagent that just began holds 8 MB, and its tools come and go.
ENOUGH = 4
LEAST_BYTES = 32 << 20
# It is looked at when hooks run, mostly not at its highest.
MARGIN = 1.25


def estimate_bytes(state: str, project: str) -> int | None:
    """What the next one will hold, of those that held most lately."""
    most = [int(past["most_bytes"]) for past in read(state).get(project, [])]
    if len(most) < ENOUGH:
        return None
    return max(int(MARGIN * max(most)), LEAST_BYTES)


def learn(state: str, project: str, past: dict[str, Any]) -> None:
    """One more of this project; the projects not seen for longest are forgotten."""
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
    """What is no longer understood is learned again."""
    try:
        with open(f"{state}/{NAME}") as file:
            known = json.load(file)
        for recent in known.values():
            for past in recent:
                int(past["most_bytes"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return dict(known)
