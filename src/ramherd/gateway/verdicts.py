"""The verdicts of `ramherd mcp probe`, with their evidence."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramherd.gateway.sharing import ShareChoice
from ramherd.system.files import open_private, write_json

FILE = "mcp/verdicts.json"


def read_verdicts(state: Path) -> dict[str, ShareChoice]:
    return {
        name: ShareChoice(str(found["mode"]), str(found["reason"]))
        for name, found in read_evidence(state).items()
    }  # fmt: skip


def read_evidence(state: Path) -> dict[str, Any]:
    try:
        with open(open_private(str(state / FILE), os.O_RDONLY), encoding="utf-8") as file:
            found = json.load(file)
        return {name: dict(one) for name, one in found.items() if one["mode"] and one["reason"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_verdict(state: Path, name: str, verdict: Mapping[str, Any]) -> None:
    """`verdict` has `mode`, `reason` and `evidence`."""
    path = state / FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(str(path), {**read_evidence(state), name: dict(verdict)})
