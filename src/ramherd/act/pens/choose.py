"""The strongest pen that works here, found by doing; and pens again from their records."""

from pathlib import Path
from typing import Any

from ramherd.act.pens import Fleet, Pen
from ramherd.act.pens.cgroup1 import Cgroup1Fleet, Cgroup1Pen
from ramherd.act.pens.polling import PollingFleet
from ramherd.errors import NoPen
from ramherd.measure.cgroups import Trees
from ramherd.model import ProcId

KINDS = (Cgroup1Fleet.kind, PollingFleet.kind)


def make_fleet(kind: str, trees: Trees, owner: str) -> tuple[Fleet, str]:
    """A fleet, and, if a stronger kind was tried in vain, why."""
    if kind == PollingFleet.kind:
        return PollingFleet(), ""
    try:
        return Cgroup1Fleet.make(trees, owner), ""
    except NoPen as error:
        if kind == Cgroup1Fleet.kind:
            raise
        return PollingFleet(), str(error)


def pen_from_record(record: dict[str, Any]) -> Pen:
    """A pen, or a whole fleet of cgroups, that an earlier supervisor left, to be cleared."""
    if record["kind"] == Cgroup1Fleet.kind:
        return Cgroup1Pen({name: Path(path) for name, path in record["paths"].items()})
    pen = PollingFleet().add(record["run"], None)
    if record.get("first") is not None:
        pen.note_start(ProcId(*record["first"]))
    return pen
