"""A session's pen by way of `make_fleet`, on machines where the short way does not work."""

from ramherd.act.pens.selection import make_fleet
from ramherd.exec.pen import SessionPen
from ramherd.measure.cgroups import read_trees


def make_in_fleet(
    kind: str, owner: str, run: str, limit_bytes: int | None, most_bytes: int
) -> SessionPen:
    """Already made when it is put on record, as a fleet's pens are."""
    fleet, why_weaker = make_fleet(kind, read_trees(), owner)
    fleet.set_limit(most_bytes)
    made = fleet.add(run, limit_bytes)
    part = made.spawn_part()
    pen = SessionPen(made.record(), part["join"], [*part["dirs"], *fleet.dirs()])
    pen.fleet, pen.why_weaker, pen.made_by = fleet.record(), why_weaker, fleet
    return pen
