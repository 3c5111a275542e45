"""After the death of `ramherd exec`: TERM, the grace, KILL; then nothing of its session is left."""

import signal
import time
from contextlib import closing
from pathlib import Path

from ramherd.act.pens import Pen
from ramherd.act.pens.ending import has_members
from ramherd.act.pens.selection import pen_from_record
from ramherd.act.recovery import recover
from ramherd.exec.nouns import Session
from ramherd.exec.places import Place
from ramherd.store.connect import open_store
from ramherd.store.herds import read_open_herds, read_pens
from ramherd.store.owner import is_alive
from ramherd.system.files import remove_dirs

LOOK_EVERY_S = 0.02


def clear_lost(session: Session, place: Place, dirs: list[str], grace_s: float) -> None:
    """`dirs` are the pen's, in case that it was not on record yet."""
    runtime = Path(place.runtime)
    with closing(open_store(Path(place.state))) as store:
        stored = [pen for pen in read_pens(store, session.herd) if pen.run]
        pens = [pen_from_record(pen.record) for pen in stored]
        ask_to_end(pens)
        deadline = time.monotonic() + grace_s
        while any(map(is_inhabited, pens)) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        owner = next(
            (owner for herd, owner in read_open_herds(store) if herd == session.herd), None
        )
        # Its files are closed a moment before the process is gone.
        while owner is not None and is_alive(owner, runtime):
            time.sleep(LOOK_EVERY_S)
        recover(store, runtime, Path(place.state) / "runs")
    remove_dirs(dirs)
    Path(f"{place.owners}/{session.owner}").unlink(missing_ok=True)


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
