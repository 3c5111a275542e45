"""Finds the strongest kind of pen that works here, by trying; makes pens from their records."""

from pathlib import Path
from typing import Any

from ramherd.act.pens import Pen, cgroup1, cgroup2
from ramherd.act.pens.cgroup import CgroupFleet, CgroupPen
from ramherd.act.pens.cgroup2 import find_home
from ramherd.act.pens.polling import POLL_S, PollingFleet
from ramherd.core.errors import NoPen
from ramherd.core.model import ProcId
from ramherd.measure.cgroups import Trees

Fleet = CgroupFleet | PollingFleet

# The disadvantage where no cgroup can be used: one line of 80 columns. The doctor prints the cause.
POLLED = f"limits are polled: a run can exceed its own for {POLL_S} s (ramherd doctor)"
# Strongest first.
CGROUPS = (cgroup2, cgroup1)


def make_fleet(kind: str, trees: Trees, owner: str) -> tuple[Fleet, str]:
    """Returns a fleet, and, if stronger kinds failed, why."""
    reasons = []
    for cgroups in CGROUPS:
        if kind in ("auto", cgroups.KIND):
            try:
                return cgroups.make_fleet(trees, owner), ""
            except NoPen as error:
                if kind != "auto":
                    raise
                reasons.append(f"{error}{what_is_better(error)}")
    return PollingFleet(), "; ".join(reasons)


def what_is_better(error: NoPen) -> str:
    """The hint in brackets, without the part that suggests polling pens: they are used now."""
    better = error.hint.removesuffix("pass --pen polling").removesuffix(", or ")
    return f" ({better})" if better else ""


def fleet_from_record(record: dict[str, Any], trees: Trees) -> Fleet:
    """The fleet of an earlier supervisor, in which its runs continue."""
    paths = {name: Path(path) for name, path in record.get("paths", {}).items()}
    if record["kind"] == cgroup2.KIND:
        if trees.v2 is None:
            raise NoPen("this machine no longer has cgroup v2", hint="reboot")
        return cgroup2.fleet_at(paths[cgroup2.KIND], find_home(trees.v2))
    return cgroup1.fleet_at(paths) if record["kind"] == cgroup1.KIND else PollingFleet()


def adopt_pen(fleet: Fleet, record: dict[str, Any], limit_bytes: int | None) -> Pen:
    """The pen of a run that continues."""
    if isinstance(fleet, PollingFleet):
        pen = fleet.add(record["run"], limit_bytes)  # the run that started its process
        if record.get("first") is not None:
            pen.set_first(ProcId(*record["first"]))
        return pen
    adopted = pen_from_record(record)
    if limit_bytes is not None and isinstance(adopted, CgroupPen):
        adopted.set_limit(limit_bytes)
    return adopted


def pen_from_record(record: dict[str, Any]) -> Pen:
    """A pen, or a whole fleet of cgroups, that an earlier supervisor left, to be cleared."""
    paths = {name: Path(path) for name, path in record.get("paths", {}).items()}
    if record["kind"] == cgroup2.KIND:
        return cgroup2.pen_at(paths[cgroup2.KIND])
    if record["kind"] == cgroup1.KIND:
        return cgroup1.pen_at(paths)
    pen = PollingFleet().add(record["run"], None)
    if record.get("first") is not None:
        pen.set_first(ProcId(*record["first"]))
    return pen
