"""The ledger's SQL. The file is void after a reboot, so it is made anew rather than migrated."""

# "RAMH": another program's database is not mistaken for a ledger.
APPLICATION_ID = 0x52414D48
VERSION = 2

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
        until REAL,
        PRIMARY KEY (owner, kind, key)
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS subagents (
        owner TEXT NOT NULL REFERENCES owners (id),
        agent TEXT NOT NULL,
        type TEXT NOT NULL,
        started REAL NOT NULL,
        before_bytes INTEGER NOT NULL,
        most_bytes INTEGER NOT NULL,
        transcript TEXT NOT NULL,
        PRIMARY KEY (owner, agent)
    ) STRICT
    """,
)

TABLES = ("owners", "leases", "subagents")
# To say again what is said already would be a write, which wakes everybody who waits.
IS_MADE = "SELECT count(*) FROM sqlite_master WHERE type = 'table'"

OWNERS = "SELECT id, boot_id, pid, start_ticks FROM owners"
PIDS = "SELECT id, pid FROM owners"
ADD_OWNER = "INSERT OR IGNORE INTO owners (id, boot_id, pid, start_ticks) VALUES (?, ?, ?, ?)"
DROP_OWNER = "DELETE FROM owners WHERE id = ?"
DROP_LEASES = "DELETE FROM leases WHERE owner = ?"
DROP_SUBAGENTS = "DELETE FROM subagents WHERE owner = ?"
# Monotonic, as `waiting_since` is.
DROP_OVERDUE = "DELETE FROM leases WHERE until < ?"
DROP_LEASE = "DELETE FROM leases WHERE (owner, kind, key) = (?, ?, ?)"
LEASES = "SELECT owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since FROM leases"
SET_LEASE = """
    INSERT INTO leases (owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes, used_bytes = excluded.used_bytes,
        wants_bytes = excluded.wants_bytes, waiting_since = excluded.waiting_since
"""

# Of hooked sessions: `seats.py`.
SESSIONS = """
    SELECT id, pid, start_ticks FROM owners
    WHERE id IN (SELECT owner FROM leases WHERE kind = 'session')
"""
ROWS = "SELECT owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since, until FROM leases"
SET_SESSION = """
    INSERT INTO leases (owner, kind, key, bytes, used_bytes, wants_bytes)
    VALUES (?1, 'session', '', ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET bytes = ?2, used_bytes = ?3, wants_bytes = ?4
"""
SET_SEAT = """
    INSERT INTO leases (owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since, until)
    VALUES (?, 'subagent', ?, ?, 0, ?, ?, ?)
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes, wants_bytes = excluded.wants_bytes,
        waiting_since = excluded.waiting_since, until = excluded.until
"""
# Which subagent a call became is told by nobody: the first one called is the first to start.
FIRST_PROVISIONAL = """
    SELECT key, bytes FROM leases
    WHERE owner = ?1 AND kind = 'subagent' AND until IS NOT NULL AND bytes > 0
    ORDER BY key != ?2, until LIMIT 1
"""
DROP_SEAT = "DELETE FROM leases WHERE owner = ? AND kind = 'subagent' AND key = ?"
ADD_SUBAGENT = "INSERT OR REPLACE INTO subagents VALUES (?, ?, ?, ?, ?, 0, ?)"
TRANSCRIPTS = "SELECT owner, agent, transcript FROM subagents"
SUBAGENT = """
    SELECT type, started, before_bytes, most_bytes FROM subagents WHERE (owner, agent) = (?, ?)
"""
DROP_SUBAGENT = "DELETE FROM subagents WHERE (owner, agent) = (?, ?)"
AGENTS = "SELECT agent FROM subagents WHERE owner = ?"
NOTE_MOST = "UPDATE subagents SET most_bytes = ?1 WHERE owner = ?2 AND most_bytes < ?1"
FIRST_START = "SELECT min(started) FROM subagents WHERE owner = ?"
