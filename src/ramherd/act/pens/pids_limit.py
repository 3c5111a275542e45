"""How many processes one pen may hold: the same file in cgroup v1 and v2, none in polling."""

from ramherd.act.pens import Pen
from ramherd.system.files import try_control


def limit_pids(pen: Pen, most: int) -> bool:
    """False where no kernel holds the pen to it."""
    wrote = [try_control(f"{path}/pids.max", str(most)) for path in pen.spawn_part()["dirs"]]
    return any(wrote)
