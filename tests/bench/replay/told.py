"""What only ramherd can say: its summary, and how long its holds lasted."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Told:
    supervisor_rss_bytes: int = 0
    keeper_rss_bytes: int = 0
    held_s: Sequence[float] = ()


NOTHING = Told()


def read_told(place: Path) -> Told:
    out, store = (place / "out").read_text(), place / "state/ramherd/ramherd.db"
    held_s = read_held_s(store) if store.exists() else []
    if not out.strip():
        return Told(held_s=held_s)
    supervisor = json.loads(out)["supervisor"]
    return Told(supervisor["rss_peak_bytes"], supervisor["keeper_rss_peak_bytes"], held_s)


def read_held_s(store: Path) -> list[float]:
    """Of each hold, from the event that ended it."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT reason FROM events WHERE kind = 'run_granted'").fetchall()
    reasons = [json.loads(reason) for (reason,) in rows if reason]
    return [float(reason["held_s"]) for reason in reasons if "held_s" in reason]
