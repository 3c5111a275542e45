"""After the death of `ramherd exec`: TERM, the grace, KILL; then nothing of its session is left."""

import signal
import time
from contextlib import closing
from pathlib import Path

from ramherd.act.pens import Pen
from ramherd.act.pens.choose import pen_from_record
from ramherd.act.recover import has_members, recover
from ramherd.queue.owner import is_alive
from ramherd.queue.store import Store

LOOK_EVERY_S = 0.02


def clear_lost(herd: str, state: str, runtime: str, grace_s: float) -> None:
    with closing(Store(Path(state) / "ramherd.db")) as store:
        pens = [pen_from_record(stored.record) for stored in store.pens_of(herd) if stored.run]
        ask_to_end(pens)
        deadline = time.monotonic() + grace_s
        while any(map(is_inhabited, pens)) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        owner = next((owner for found, owner in store.open_herds() if found == herd), None)
        # Its files are closed a moment before the process is gone.
        while owner is not None and is_alive(owner, Path(runtime)):
            time.sleep(LOOK_EVERY_S)
        recover(store, Path(runtime), Path(state) / "runs")


def ask_to_end(pens: list[Pen]) -> None:
    """What is frozen or stopped would not hear TERM."""
    for pen in pens:
        try:
            pen.thaw()
            pen.signal(signal.SIGTERM)
            pen.signal(signal.SIGCONT)
        except FileNotFoundError:  # on record, and not made yet
            pass


def is_inhabited(pen: Pen) -> bool:
    try:
        return has_members(pen)
    except FileNotFoundError:
        return False
