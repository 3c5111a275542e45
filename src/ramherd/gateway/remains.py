"""The pens of this gateway, on disk: a gateway that was killed leaves them to the next one."""

import json
import os
from pathlib import Path
from typing import Any

from ramherd.act.pens import Pen
from ramherd.act.pens.ending import end_pens, kill_pens
from ramherd.act.pens.selection import Fleet, pen_from_record
from ramherd.system.files import open_private, write_json
from ramherd.system.procfs import read_boot_id

FILE = "mcp/pens.json"


def record_pens(runtime: Path, owner: str, fleet: Fleet, pens: list[Pen]) -> None:
    """A gateway that cannot write this runs all the same."""
    found = {
        "boot_id": read_boot_id(), "owner": owner, "fleet": fleet.record(),
        "pens": [pen.record() for pen in pens],
    }  # fmt: skip
    try:
        write_json(str(runtime / FILE), found)
    except OSError:
        pass


def clear_remains(runtime: Path) -> int:
    """Ends what an earlier gateway left; returns how many pens. Only the one gateway calls it."""
    pens, fleet = read_remains(runtime)
    kill_pens(pens)
    remove_pens(pens, fleet)
    (runtime / FILE).unlink(missing_ok=True)
    return len(pens)


def end_remains(runtime: Path, owner: str, grace_s: float) -> None:
    """For the guard of a gateway that was killed: TERM, the grace, KILL. Another gateway may have
    started meanwhile: the file stays, and pens of another owner are not touched.
    """
    pens, fleet = read_remains(runtime, owner)
    end_pens(pens, grace_s)
    remove_pens(pens, fleet)


def read_remains(runtime: Path, owner: str | None = None) -> tuple[list[Pen], list[Pen]]:
    """The pens of servers, and the pen around all of them where there is one. With `owner`: only
    those of that gateway.
    """
    try:
        fd = open_private(str(runtime / FILE), os.O_RDONLY)
        with open(fd, encoding="utf-8") as file:
            found = json.load(file)
        if found["boot_id"] != read_boot_id() or owner not in (None, found.get("owner")):
            return [], []
        records: list[dict[str, Any]] = found["pens"]
        fleet: dict[str, Any] = found["fleet"]
    except (OSError, ValueError, KeyError, TypeError):
        return [], []
    whole = [pen_from_record(fleet)] if "paths" in fleet else []
    return [pen_from_record(record) for record in records], whole


def remove_pens(pens: list[Pen], fleet: list[Pen]) -> None:
    for pen in pens:
        pen.remove()
    kill_pens(fleet)
    for pen in fleet:
        pen.remove()
