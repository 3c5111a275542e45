"""What a ramherd that died left behind: its pens are cleared, its open jobs closed.

Mostly its keeper has done so already; when both died, the next start does it here.
"""

import time
from pathlib import Path

from ramherd.act.pens import Pen
from ramherd.act.pens.choose import pen_from_record
from ramherd.act.pens.polling import PollingFleet
from ramherd.act.sweeper import remove_tree
from ramherd.model import Reason, Why
from ramherd.queue.owner import is_alive
from ramherd.queue.store import Store, StoredPen

CLEAR_S = 10.0


def recover(store: Store, runtime: Path, runs_dir: Path) -> int:
    """How many herds of dead owners were closed."""
    dead = [herd for herd, owner in store.open_herds() if not is_alive(owner, runtime)]
    for herd in dead:
        # Pens of runs before the fleet that holds them.
        for stored in sorted(store.pens_of(herd), key=lambda pen: not pen.run):
            if clear(stored):
                store.drop_pen(stored.id)
        for run in store.lose_herd(herd, Reason(Why.SUPERVISOR_LOST)):
            remove_tree(runs_dir / run / "tmp")
        store.commit()
    return len(dead)


def clear(stored: StoredPen) -> bool:
    """Kill until it is empty, then remove it. A polling fleet is nothing but its pens."""
    if stored.record["kind"] == PollingFleet.kind and not stored.run:
        return True
    pen = pen_from_record(stored.record)
    deadline = time.monotonic() + CLEAR_S
    try:
        while has_members(pen) and time.monotonic() < deadline:
            pen.kill()
            time.sleep(0.01)
        return pen.remove()
    except FileNotFoundError:  # the keeper was faster
        return True


def has_members(pen: Pen) -> bool:
    pen.signal(0)
    return pen.read().procs > 0
