"""All SQL in one place. A migration, once released, is never changed: add another."""

MIGRATIONS = (
    """
    CREATE TABLE herds (
        id TEXT PRIMARY KEY,
        created_s REAL NOT NULL,
        ended_s REAL,
        owner TEXT NOT NULL,
        boot_id TEXT NOT NULL,
        pid INTEGER NOT NULL,
        start_ticks INTEGER NOT NULL,
        summary TEXT
    ) STRICT;
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        herd TEXT NOT NULL REFERENCES herds (id),
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        spec TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        updated_s REAL NOT NULL,
        UNIQUE (herd, name)
    ) STRICT;
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        job TEXT NOT NULL REFERENCES jobs (id),
        attempt INTEGER NOT NULL,
        node TEXT NOT NULL DEFAULT '',
        started_s REAL NOT NULL,
        ended_s REAL,
        end TEXT,
        exit_code INTEGER,
        signal INTEGER,
        reason TEXT,
        peak_bytes INTEGER,
        available_before_bytes INTEGER,
        available_least_bytes INTEGER,
        available_after_bytes INTEGER,
        UNIQUE (job, attempt)
    ) STRICT;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at_s REAL NOT NULL,
        kind TEXT NOT NULL,
        herd TEXT NOT NULL,
        job TEXT NOT NULL DEFAULT '',
        run TEXT NOT NULL DEFAULT '',
        node TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX events_of_job ON events (job);
    CREATE TABLE samples (
        run TEXT NOT NULL,
        at_s REAL NOT NULL,
        used_bytes INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX samples_of_run ON samples (run);
    CREATE TABLE pens (
        id TEXT PRIMARY KEY,
        herd TEXT NOT NULL,
        run TEXT NOT NULL DEFAULT '',
        record TEXT NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE runs ADD COLUMN log_bytes INTEGER;
    CREATE INDEX runs_not_measured ON runs (id) WHERE log_bytes IS NULL AND ended_s IS NOT NULL;
    CREATE INDEX runs_measured ON runs (ended_s, id, log_bytes) WHERE log_bytes IS NOT NULL;
    """,
    """
    CREATE TABLE classes (
        agent TEXT NOT NULL,
        project TEXT NOT NULL,
        label TEXT NOT NULL,
        runs INTEGER NOT NULL,
        covered INTEGER NOT NULL,
        recent TEXT NOT NULL,
        updated_s REAL NOT NULL,
        PRIMARY KEY (agent, project, label)
    ) STRICT;
    """,
    """
    CREATE TABLE sightings (
        place TEXT NOT NULL,
        pid INTEGER NOT NULL,
        start_ticks INTEGER NOT NULL,
        first_s REAL NOT NULL,
        at_s REAL NOT NULL,
        ppid INTEGER NOT NULL,
        cpu_ticks INTEGER NOT NULL,
        active_s REAL NOT NULL,
        bytes INTEGER NOT NULL,
        orphan_s REAL,
        points TEXT NOT NULL,
        PRIMARY KEY (place, pid, start_ticks)
    ) STRICT;
    CREATE TABLE stray_counts (
        at_s REAL NOT NULL,
        software TEXT NOT NULL,
        processes INTEGER NOT NULL,
        strays INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        PRIMARY KEY (at_s, software)
    ) STRICT;
    """,
    # The service: herds without an owner, their jobs in one line, what is wished of them.
    """
    ALTER TABLE herds ADD COLUMN service INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE herds ADD COLUMN env TEXT;
    ALTER TABLE jobs ADD COLUMN place INTEGER;
    ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN seen_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN not_before_s REAL NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN wish TEXT;
    CREATE INDEX jobs_in_line ON jobs (priority DESC, place)
        WHERE state = 'queued' AND place IS NOT NULL;
    CREATE INDEX jobs_placed ON jobs (place) WHERE place IS NOT NULL;
    CREATE INDEX jobs_delayed ON jobs (not_before_s)
        WHERE state = 'queued' AND place IS NOT NULL AND not_before_s > 0;
    CREATE INDEX jobs_wished ON jobs (place) WHERE wish IS NOT NULL;
    CREATE INDEX jobs_open ON jobs (herd, state)
        WHERE state NOT IN ('done', 'failed', 'cancelled');
    CREATE TABLE needs (
        job TEXT NOT NULL, needs TEXT NOT NULL, PRIMARY KEY (job, needs)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX needs_of ON needs (needs);
    CREATE TABLE flags (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE INDEX events_of_herd ON events (herd, seq);
    UPDATE runs SET ended_s = started_s, end = 'lost' WHERE ended_s IS NULL AND EXISTS
        (SELECT 1 FROM runs AS later WHERE later.job = runs.job AND later.attempt > runs.attempt);
    CREATE UNIQUE INDEX one_live_run ON runs (job) WHERE ended_s IS NULL;
    ALTER TABLE runs ADD COLUMN stopping TEXT;
    """,
    """
    ALTER TABLE jobs ADD COLUMN said TEXT;
    """,
    # The service drives agents: the next one goes on counting, how often the API was too busy for
    # a job and what a herd has cost.
    """
    ALTER TABLE jobs ADD COLUMN overloads INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE herds ADD COLUMN max_cost_usd REAL;
    """,
)

MIGRATIONS_TABLE = """
    CREATE TABLE IF NOT EXISTS migrations (
        number INTEGER PRIMARY KEY, applied_s REAL NOT NULL
    ) STRICT
"""
NEWEST_MIGRATION = "SELECT coalesce(max(number), 0) FROM migrations"
ADD_MIGRATION = "INSERT INTO migrations (number, applied_s) VALUES (?, ?)"

ADD_HERD = (
    "INSERT INTO herds (id, created_s, owner, boot_id, pid, start_ticks) VALUES (?, ?, ?, ?, ?, ?)"
)
END_HERD = "UPDATE herds SET ended_s = ?, summary = ? WHERE id = ?"
# A herd of the service waits for the next service when this one dies.
OPEN_HERDS = """
    SELECT id, owner, boot_id, pid, start_ticks FROM herds WHERE ended_s IS NULL AND service = 0
"""
OWNER_OF_JOB = """
    SELECT owner, boot_id, pid, start_ticks FROM herds
    WHERE ended_s IS NULL AND id = (SELECT herd FROM jobs WHERE id = ?)
"""
NEWEST_HERD = "SELECT id FROM herds ORDER BY created_s DESC, id DESC LIMIT 1"

ADD_JOB = """
    INSERT INTO jobs (id, herd, name, seq, spec, state, reason, updated_s)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_SAID = "UPDATE jobs SET said = ? WHERE id = ?"
# What has ended stays as it ended, and a run before the newest has nothing more to say.
SET_JOB = """
    UPDATE jobs SET state = :state, reason = :reason, attempts = :attempts, failures = :failures,
        lost = :lost, seen_bytes = :seen_bytes, interrupted = :interrupted,
        overloads = :overloads, not_before_s = :not_before_s, updated_s = :now,
        wish = CASE
            WHEN :final OR (wish = 'recycle' AND :state = 'queued') THEN NULL ELSE wish
        END
    WHERE id = :id AND state NOT IN ('done', 'failed', 'cancelled') AND attempts <= :attempts
"""
LOSE_JOBS = """
    UPDATE jobs SET state = 'cancelled', reason = ?, updated_s = ?
    WHERE herd = ? AND state NOT IN ('done', 'failed', 'cancelled')
"""
FIND_JOB = """
    SELECT id, name, state FROM jobs
    WHERE herd = ? AND (name = ? OR id = ?)
"""
FIND_JOB_BY_ID = "SELECT id, name, state FROM jobs WHERE id = ?"
FIND_NEWEST_JOB = "SELECT id, name, state FROM jobs WHERE name = ? ORDER BY id DESC LIMIT 1"
JOB_NAMES = "SELECT name FROM jobs WHERE herd = ? ORDER BY seq LIMIT ?"
JOB_STATE = "SELECT state FROM jobs WHERE id = ?"

ADD_RUN = (
    "INSERT INTO runs (id, job, attempt, started_s, available_before_bytes) VALUES (?, ?, ?, ?, ?)"
)
END_RUN = """
    UPDATE runs SET ended_s = ?, end = ?, exit_code = ?, signal = ?, reason = ?, peak_bytes = ?,
        available_least_bytes = ?, available_after_bytes = ?
    WHERE id = ? AND ended_s IS NULL
"""
LOSE_RUNS = """
    UPDATE runs SET ended_s = ?, end = 'lost', reason = ?
    WHERE ended_s IS NULL AND job IN (SELECT id FROM jobs WHERE herd = ?)
    RETURNING id
"""
NEWEST_RUN = "SELECT id FROM runs WHERE job = ? ORDER BY attempt DESC LIMIT 1"

ADD_EVENT = "INSERT INTO events (at_s, kind, herd, job, run, reason) VALUES (?, ?, ?, ?, ?, ?)"
EVENTS = """
    SELECT events.seq, at_s, kind, events.herd, job, run, events.reason, jobs.name
    FROM events LEFT JOIN jobs ON jobs.id = events.job
    WHERE events.seq > :after AND (:job IS NULL OR job = :job)
        AND (:herd IS NULL OR events.herd = :herd) AND (:since_s IS NULL OR at_s >= :since_s)
    ORDER BY events.seq
"""
TRIM_EVENTS = "DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?"
ADD_SAMPLE = "INSERT INTO samples (run, at_s, used_bytes) VALUES (?, ?, ?)"
TRIM_SAMPLES = "DELETE FROM samples WHERE rowid <= (SELECT max(rowid) FROM samples) - ?"

# `id` is the run that it was made for, `run` the one that lives in it: a warm process is passed
# from run to run. A fleet's is its owner, without a run.
ADD_PEN = "INSERT INTO pens (id, herd, run, record) VALUES (?, ?, ?, ?)"
SET_PEN = "UPDATE pens SET record = ? WHERE id = ?"
HAND_PEN = "UPDATE pens SET run = ? WHERE id = ?"
DROP_PEN = "DELETE FROM pens WHERE id = ?"
PENS_OF_HERD = "SELECT id, run, record FROM pens WHERE herd = ?"

HAS_PEN = "EXISTS (SELECT 1 FROM pens WHERE pens.id = runs.id)"

# `log_bytes` is known of runs in herds that are over, and of no others: only those are pruned.
# Where a pen is, the directory is in use.
NOT_MEASURED = f"""
    SELECT runs.id FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.log_bytes IS NULL AND runs.ended_s IS NOT NULL AND herds.ended_s IS NOT NULL
        AND NOT {HAS_PEN}
    LIMIT ?
"""
SET_LOG_BYTES = "UPDATE runs SET log_bytes = ? WHERE id = ?"
LOGS_BYTES = "SELECT coalesce(sum(log_bytes), 0) FROM runs WHERE log_bytes IS NOT NULL"
OLDEST_LOGS = """
    SELECT id, ended_s, log_bytes FROM runs
    WHERE log_bytes IS NOT NULL AND (ended_s, id) > (?, ?) ORDER BY ended_s, id LIMIT ?
"""
OLDEST_OVER = f"""
    SELECT runs.id, runs.ended_s
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.ended_s IS NOT NULL AND herds.ended_s IS NOT NULL AND NOT {HAS_PEN}
    ORDER BY runs.ended_s, runs.id
"""
IS_RUN = "SELECT 1 FROM runs WHERE id = ?"
JOB_OF_RUN = "SELECT job, herd FROM runs JOIN jobs ON jobs.id = runs.job WHERE runs.id = ?"
DROP_RUN = "DELETE FROM runs WHERE id = ?"
DROP_SAMPLES = "DELETE FROM samples WHERE run = ?"
DROP_EVENTS = "DELETE FROM events WHERE job = ? AND run = ?"
# A job goes with its last run, a herd with its last job that ran.
DROP_JOB = "DELETE FROM jobs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE job = jobs.id)"
DROP_NEEDS = "DELETE FROM needs WHERE job = ?"
HAS_RUNS = "SELECT 1 FROM runs JOIN jobs ON jobs.id = runs.job WHERE jobs.herd = ? LIMIT 1"
DROP_HERD = (
    "DELETE FROM needs WHERE job IN (SELECT id FROM jobs WHERE herd = ?)",
    "DELETE FROM events WHERE job IN (SELECT id FROM jobs WHERE herd = ?)",
    "DELETE FROM jobs WHERE herd = ?",
    "DELETE FROM herds WHERE id = ?",
)
GET_CLASS = "SELECT runs, covered, recent FROM classes WHERE (agent, project, label) = (?, ?, ?)"
SET_CLASS = """
    INSERT INTO classes (agent, project, label, runs, covered, recent, updated_s)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET runs = excluded.runs, covered = excluded.covered,
        recent = excluded.recent, updated_s = excluded.updated_s
"""
CLASSES = """
    SELECT agent, project, label, runs, covered, recent, updated_s FROM classes
    ORDER BY updated_s DESC
"""

SIGHTINGS = """
    SELECT pid, start_ticks, first_s, at_s, ppid, cpu_ticks, active_s, bytes, orphan_s, points
    FROM sightings WHERE place = ?
"""
SET_SIGHTING = """
    INSERT OR REPLACE INTO sightings (
        place, pid, start_ticks, first_s, at_s, ppid, cpu_ticks, active_s, bytes, orphan_s, points
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_SIGHTINGS = "DELETE FROM sightings WHERE at_s < ?"
DROP_GONE_SIGHTINGS = "DELETE FROM sightings WHERE place = ? AND at_s < ?"
ADD_STRAY_COUNT = """
    INSERT OR REPLACE INTO stray_counts (at_s, software, processes, strays, ended)
    VALUES (?, ?, ?, ?, ?)
"""
STRAY_COUNTS = """
    SELECT at_s, software, processes, strays, ended FROM stray_counts
    WHERE at_s >= ? ORDER BY at_s
"""
DROP_STRAY_COUNTS = "DELETE FROM stray_counts WHERE at_s < ?"
# What bears its tag is not over while its pen is there.
RUN_STATE = f"""
    SELECT (runs.ended_s IS NOT NULL OR herds.ended_s IS NOT NULL) AND NOT {HAS_PEN},
        herds.service, herds.owner, herds.boot_id, herds.pid, herds.start_ticks
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.id = ?
"""
