"""The ledger's SQL. A reboot voids the rows, so the file is made again rather than migrated.

Several versions of ramherd may use one file. Within a FORMAT, tables and columns are only added,
with a default, and each statement names its columns. The table `owners` is the same in every
format: so each version can find out whether a ledger of another format is in use.
"""

# "RAMH": another program's database is not mistaken for a ledger.
APPLICATION_ID = 0x52414D48
# Kept in user_version as 100 * FORMAT + REVISION.
FORMAT, REVISION = 1, 1
VERSION = 100 * FORMAT + REVISION

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
    """
    CREATE TABLE IF NOT EXISTS waiters (
        owner TEXT NOT NULL REFERENCES owners (id),
        call TEXT NOT NULL,
        since REAL NOT NULL,
        until REAL NOT NULL,
        need_bytes INTEGER NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (owner, call)
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS turns (
        owner TEXT PRIMARY KEY REFERENCES owners (id),
        granted REAL NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS ended_subagents (
        number INTEGER PRIMARY KEY,
        at_s REAL NOT NULL,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        type TEXT NOT NULL,
        project TEXT NOT NULL,
        seconds REAL NOT NULL,
        before_bytes INTEGER NOT NULL,
        after_bytes INTEGER NOT NULL,
        most_bytes INTEGER NOT NULL
    ) STRICT
    """,
)

TABLES = {"owners", "leases", "subagents", "waiters", "turns", "ended_subagents"}
TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"

OWNERS = "SELECT id, boot_id, pid, start_ticks FROM owners"
ADD_OWNER = "INSERT OR IGNORE INTO owners (id, boot_id, pid, start_ticks) VALUES (?, ?, ?, ?)"
DROP_OWNER = (
    "DELETE FROM leases WHERE owner = ?",
    "DELETE FROM subagents WHERE owner = ?",
    "DELETE FROM waiters WHERE owner = ?",
    "DELETE FROM turns WHERE owner = ?",
    "DELETE FROM owners WHERE id = ?",
)
DROP_OWNERLESS = """
    DELETE FROM leases WHERE owner NOT IN (SELECT id FROM owners)
    RETURNING owner, kind, bytes
"""
DROP_OVERDUE = ("DELETE FROM leases WHERE until < ?", "DELETE FROM waiters WHERE until < ?")
DROP_LEASE = "DELETE FROM leases WHERE (owner, kind, key) = (?, ?, ?)"
COUNT_LEASES = "SELECT count(*) FROM leases WHERE bytes > 0"
LEASES = "SELECT owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since, until FROM leases"
# For processes without a lease: owners that were not removed yet may be dead.
USE_OF_OWNERS = """
    SELECT pid, start_ticks, sum(bytes), sum(used_bytes)
    FROM leases JOIN owners ON owners.id = leases.owner WHERE boot_id = '{boot_id}'
    GROUP BY owners.id
"""
# The same by kind: a lease of runs has headroom, the others are what was granted.
USE_BY_KIND = """
    SELECT pid, start_ticks, kind, sum(bytes), sum(used_bytes)
    FROM leases JOIN owners ON owners.id = leases.owner WHERE boot_id = '{boot_id}'
    GROUP BY owners.id, kind
"""
SET_LEASE = """
    INSERT INTO leases (owner, kind, key, bytes, used_bytes, wants_bytes, waiting_since, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, kind, key) DO UPDATE SET bytes = excluded.bytes,
        used_bytes = excluded.used_bytes, wants_bytes = excluded.wants_bytes,
        waiting_since = excluded.waiting_since, until = excluded.until
"""
SET_USED = """
    UPDATE leases SET used_bytes = min(?, bytes) WHERE (owner, kind, key) = (?, ?, ?)
"""

# Hooked sessions: `subagent_slots.py`.
SESSIONS = """
    SELECT id, boot_id, pid, start_ticks FROM owners
    WHERE id IN (SELECT owner FROM leases WHERE kind = 'session')
"""
# No message links a call to its subagent: the first call is taken for the first start.
FIRST_PROVISIONAL = """
    SELECT key, bytes FROM leases
    WHERE owner = ?1 AND kind = 'subagent' AND until IS NOT NULL AND bytes > 0
    ORDER BY key != ?2, until LIMIT 1
"""
ADD_SUBAGENT = """
    INSERT OR REPLACE INTO subagents
        (owner, agent, type, started, before_bytes, most_bytes, transcript)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
SUBAGENTS_OF = """
    SELECT agent, type, started, before_bytes, most_bytes, transcript FROM subagents
    WHERE owner = ?
"""
RUNNING_SUBAGENTS = """
    SELECT pid, agent, type, started, before_bytes, most_bytes
    FROM subagents JOIN owners ON owners.id = subagents.owner ORDER BY started
"""
TRANSCRIPTS = "SELECT owner, agent, transcript FROM subagents"
SUBAGENT = """
    SELECT type, started, before_bytes, most_bytes FROM subagents WHERE (owner, agent) = (?, ?)
"""
DROP_SUBAGENT = "DELETE FROM subagents WHERE (owner, agent) = (?, ?)"
AGENTS = "SELECT agent FROM subagents WHERE owner = ?"
RECORD_MOST = "UPDATE subagents SET most_bytes = ?1 WHERE owner = ?2 AND most_bytes < ?1"
FIRST_START = "SELECT min(started) FROM subagents WHERE owner = ?"
# Waiting subagents, with the reason; one that waits for memory also has a lease.
WAITERS = "SELECT owner, call, since, until, need_bytes, reason FROM waiters"
SET_WAITER = """
    INSERT OR REPLACE INTO waiters (owner, call, since, until, need_bytes, reason)
    VALUES (?, ?, ?, ?, ?, ?)
"""
DROP_WAITER = "DELETE FROM waiters WHERE (owner, call) = (?, ?)"
# When each session last got a slot.
TURNS = "SELECT owner, granted FROM turns"
SET_TURN = "INSERT OR REPLACE INTO turns (owner, granted) VALUES (?, ?)"
# Subagents that have ended, and that Claude still counts.
DROP_LEAVING = "DELETE FROM leases WHERE owner = ? AND kind = 'leaving'"
# The subagents of all sessions that ended last.
ADD_ENDED = """
    INSERT INTO ended_subagents
        (at_s, session, agent, type, project, seconds, before_bytes, after_bytes, most_bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_ENDED = """
    DELETE FROM ended_subagents WHERE number <= (SELECT max(number) FROM ended_subagents) - ?
"""
ENDED = """
    SELECT at_s, session, agent, type, project, seconds, before_bytes, after_bytes, most_bytes
    FROM ended_subagents ORDER BY number
"""
