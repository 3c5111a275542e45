"""Recovers after a ramherd that died: clears its pens and closes its open jobs.

Usually the keeper has cleared the pens already; if both died, the next start of any ramherd does.
"""

from pathlib import Path

from ramherd.act.cleanup import remove_tree
from ramherd.act.pens import polling
from ramherd.act.pens.ending import kill_pens
from ramherd.act.pens.selection import pen_from_record
from ramherd.core.model import Reason, Why
from ramherd.store.herds import StoredPen, drop_pen, lose_herd, read_lost_herds, read_pens
from ramherd.store.owner import OWNERS, Owner
from ramherd.store.protocol import Store
from ramherd.system.lock_file import remove_unlocked
from ramherd.system.procfs import read_boot_id


def recover(store: Store, runtime: Path, runs_dir: Path) -> int:
    """Returns how many herds of dead owners were closed. A herd whose pens cannot be cleared stays
    open, and the next start tries again.
    """
    lost = read_lost_herds(store, runtime)
    closed = [
        herd for herd, owner in lost.items() if clear_pens(store, herd, owner, runs_dir, runtime)
    ]
    for herd in closed:
        lose_herd(store, herd, Reason(Why.SUPERVISOR_LOST))
        store.commit()
    remove_unlocked(str(runtime / OWNERS))
    return len(closed)


def clear_pens(store: Store, herd: str, owner: Owner, runs_dir: Path, runtime: Path) -> bool:
    """Clears the pens of runs before their fleet, and their access to MCP servers. After a reboot
    there are no pens.
    """
    rebooted = owner.boot_id != read_boot_id()
    done = True
    for stored in sorted(read_pens(store, herd), key=lambda pen: not pen.run):
        if rebooted or clear(stored):
            drop_pen(store, stored.id)
            store.commit()
        else:
            done = False
        if stored.run:
            remove_tree(runs_dir / stored.id / "tmp")
            drop_clients_of_run(runtime, stored.id)
    return done


def drop_clients_of_run(runtime: Path, run: str) -> None:
    from ramherd.act.mcp_access import drop_clients_of  # noqa: PLC0415 - after a crash only

    drop_clients_of(runtime, run)


def clear(stored: StoredPen) -> bool:
    """Kills until the pen is empty, then removes it. A polling fleet consists only of its pens."""
    if stored.record["kind"] == polling.KIND and not stored.run:
        return True
    pen = pen_from_record(stored.record)
    kill_pens([pen])
    return pen.remove()
