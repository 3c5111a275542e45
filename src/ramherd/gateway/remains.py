"""The pens of this gateway, on disk: a gateway that was killed leaves them to the next one."""

import json
import os
from pathlib import Path
from typing import Any

from ramherd.act.pens import Pen
from ramherd.act.pens.ending import kill_pens
from ramherd.act.pens.selection import Fleet, pen_from_record
from ramherd.system.files import open_private, write_json
from ramherd.system.procfs import read_boot_id

FILE = "mcp/pens.json"


def record_pens(runtime: Path, fleet: Fleet, pens: list[Pen]) -> None:
    """A gateway that cannot write this runs all the same."""
    records = [pen.record() for pen in pens]
    found = {"boot_id": read_boot_id(), "fleet": fleet.record(), "pens": records}
    try:
        write_json(str(runtime / FILE), found)
    except OSError:
        pass


def clear_remains(runtime: Path) -> int:
    """Ends what an earlier gateway left; returns how many pens. Only the one gateway calls it."""
    try:
        fd = open_private(str(runtime / FILE), os.O_RDONLY)
        with open(fd, encoding="utf-8") as file:
            found = json.load(file)
        if found["boot_id"] != read_boot_id():
            return 0
        records: list[dict[str, Any]] = found["pens"]
        fleet: dict[str, Any] = found["fleet"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    pens = [pen_from_record(record) for record in records]
    kill_pens(pens)
    for pen in pens:
        pen.remove()
    if "paths" in fleet:
        whole = pen_from_record(fleet)
        kill_pens([whole])
        whole.remove()
    (runtime / FILE).unlink(missing_ok=True)
    return len(pens)
