"""The ledger's SQL. The file is void after a reboot, so it is made anew rather than migrated."""

# "RAMH": another program's database is not mistaken for a ledger.
APPLICATION_ID = 0x52414D48
VERSION = 1

# What it is comes first: a file left half made by a dead process is still ours.
SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
    """
    CREATE TABLE IF NOT EXISTS owners (
        id TEXT PRIMARY KEY,
        boot_id TEXT NOT NULL,
        pid INTEGER NOT NULL,
        start_ticks INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS leases (
        owner TEXT NOT NULL REFERENCES owners (id),
        bytes INTEGER NOT NULL,
        used_bytes INTEGER NOT NULL,
        wants_bytes INTEGER NOT NULL,
        waiting_since REAL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        PRIMARY KEY (owner, kind, key)
    ) STRICT
    """,
)

OWNERS = "SELECT id, boot_id, pid, start_ticks FROM owners"
PIDS = "SELECT id, pid FROM owners"
ADD_OWNER = "INSERT OR IGNORE INTO owners (id, boot_id, pid, start_ticks) VALUES (?, ?, ?, ?)"
DROP_OWNER = "DELETE FROM owners WHERE id = ?"
DROP_LEASES = "DELETE FROM leases WHERE owner = ?"
DROP_LEASE = "DELETE FROM leases WHERE (owner, kind, key) = (?, ?, ?)"
LEASES = "SELECT owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since FROM leases"
SET_LEASE = """
    INSERT INTO leases (owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes, used_bytes = excluded.used_bytes,
        wants_bytes = excluded.wants_bytes, waiting_since = excluded.waiting_since
"""
