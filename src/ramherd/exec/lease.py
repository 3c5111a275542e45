"""A session's line in the ledger, written without `store/ledger.py` (24 ms to import) where there
is room. Where there is not, or the file is not as it should be, `ask.py` asks in full.

A session is not held, so its lease is what was asked for, from its start to its end.
"""

from __future__ import annotations

import os
import sqlite3
import time

from ramherd.exec.room import BUDGET_SHARE
from ramherd.store.lock_file import is_locked
from ramherd.store.sql import ledger as sql

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from ramherd.exec.places import Place
    from ramherd.exec.room import Memory

KIND = "exec"
# Others are waited for no longer than they take; a ledger that is locked for longer is not ours
# to wait for.
BUSY_S = 1.0
UPDATE = "UPDATE leases SET used_bytes = min(?, bytes) WHERE (owner, kind, key) = (?, ?, '')"


class SessionLease:
    def __init__(self, place: Place, owner: str) -> None:
        self.path, self._place, self.owner = f"{place.runtime}/ledger.db", place, owner
        self._db: sqlite3.Connection | None = None

    def take(self, need_bytes: int, memory: Memory) -> bool:
        """Whether there is room beside the leases of all others, and so it is ours."""
        try:
            self._db = self._open()
            return self._db is not None and self._take(self._db, need_bytes, memory)
        except sqlite3.Error:
            return False

    def _open(self) -> sqlite3.Connection | None:
        """A new ledger, or another version's, is a matter for `store/ledger.py`."""
        if not os.path.isfile(self.path):
            return None
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        db.execute("PRAGMA synchronous = OFF")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        return db if version == sql.VERSION else None

    def _take(self, db: sqlite3.Connection, need_bytes: int, memory: Memory) -> bool:
        db.execute("BEGIN IMMEDIATE")
        try:
            leases = db.execute(sql.LEASES).fetchall()
            # A lock that nobody holds may be a hooked session's, which lives by its process.
            if any(not self._is_locked(owner) for owner, *_ in leases):
                return False
            leased, used = (sum(row[at] for row in leases) for at in (3, 4))
            outside = max(memory.total_bytes - memory.available_bytes - used, 0)
            if leased + need_bytes > int(BUDGET_SHARE * memory.limit_bytes) - outside:
                return False
            self._write(db, need_bytes)
        finally:
            db.execute("COMMIT")
        return True

    def _write(self, db: sqlite3.Connection, need_bytes: int) -> None:
        from ramherd.system.procfs import read_boot_id, read_own_id  # noqa: PLC0415

        db.execute(sql.ADD_OWNER, (self.owner, read_boot_id(), *read_own_id()))
        place = (self.owner, KIND, "")
        db.execute(sql.SET_LEASE, (*place, need_bytes, 0, need_bytes, None, None))

    def _is_locked(self, owner: str) -> bool:
        return is_locked(f"{self._place.owners}/{owner}")

    def note_used(self, used_bytes: int) -> None:
        """What is beyond the lease counts as somebody else's, for those who share the rest."""
        try:
            if self._db is None:
                self._db = self._open()
            if self._db is not None:
                self._db.execute(UPDATE, (used_bytes, self.owner, KIND))
        except sqlite3.Error:
            self._db = None

    def close(self) -> None:
        """What cannot be taken back is void once we are gone."""
        try:
            db = self._db or self._open()
            if db is not None:
                for statement in sql.DROP_OWNER:
                    db.execute(statement, (self.owner,))
                db.close()
        except sqlite3.Error:
            pass


def wait_for_lease(name: str, need_bytes: int, lease: SessionLease, *, no_wait: bool) -> None:
    """Until the others leave room, having said why it waits; NoRoom when it must not wait."""
    from ramherd.exec.admission import Asking  # noqa: PLC0415

    said, asking = "", Asking(name, need_bytes, lease.path, lease.owner, no_wait=no_wait)
    try:
        while (obstacle := asking.ask()) is not None:
            why, sentence = obstacle
            if why != said:
                os.write(2, f"ramherd: {name} waits: {sentence} (Ctrl-C to leave)\n".encode())
                said = why
            time.sleep(0.5)
    finally:
        asking.close()
