"""Clears a session after the death of `ramherd exec`: TERM, the grace, KILL, removal."""

import sys
import time
from contextlib import closing

from ramherd.act.pens.ending import end_pens
from ramherd.act.pens.selection import pen_from_record
from ramherd.act.recovery import recover
from ramherd.core.errors import StoreError
from ramherd.exec.guard import Guarded
from ramherd.store.connect import open_store
from ramherd.store.herds import read_open_herds, read_pens
from ramherd.store.owner import is_alive, lock_path
from ramherd.store.protocol import Store
from ramherd.system.files import remove_dirs

LOOK_EVERY_S = 0.02


def clear_lost(guarded: Guarded) -> None:
    try:
        with closing(open_store(guarded.state)) as store:
            clear_stored(store, guarded)
    except StoreError as error:
        print(f"ramherd: {error}", file=sys.stderr)
        # Only the values from before the program's start are available.
        end_pens([pen_from_record(guarded.pen)], guarded.grace_s)
    remove_dirs(guarded.dirs)
    lock_path(guarded.runtime, guarded.owner).unlink(missing_ok=True)


def clear_stored(store: Store, guarded: Guarded) -> None:
    pens = [pen_from_record(pen.record) for pen in read_pens(store, guarded.herd) if pen.run]
    end_pens(pens, guarded.grace_s)
    owner = next((owner for herd, owner in read_open_herds(store) if herd == guarded.herd), None)
    # The kernel closes its files a moment before the process is gone.
    while owner is not None and is_alive(owner, guarded.runtime):
        time.sleep(LOOK_EVERY_S)
    recover(store, guarded.runtime, guarded.state / "runs")
