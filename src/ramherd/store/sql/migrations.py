"""The schema of the store in SQLite: each migration is a tuple of statements.

A migration, once released, is never changed: add another.
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
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
        ) STRICT
        """,
        """
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
        ) STRICT
        """,
        """
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
        ) STRICT
        """,
        """
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            at_s REAL NOT NULL,
            kind TEXT NOT NULL,
            herd TEXT NOT NULL,
            job TEXT NOT NULL DEFAULT '',
            run TEXT NOT NULL DEFAULT '',
            node TEXT NOT NULL DEFAULT '',
            reason TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX events_of_job ON events (job)",
        """
        CREATE TABLE samples (
            run TEXT NOT NULL,
            at_s REAL NOT NULL,
            used_bytes INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX samples_of_run ON samples (run)",
        """
        CREATE TABLE pens (
            id TEXT PRIMARY KEY,
            herd TEXT NOT NULL,
            run TEXT NOT NULL DEFAULT '',
            record TEXT NOT NULL
        ) STRICT
        """,
    ),
    (
        "ALTER TABLE runs ADD COLUMN log_bytes INTEGER",
        """
        CREATE INDEX runs_not_measured ON runs (id) WHERE log_bytes IS NULL AND ended_s IS NOT NULL
        """,
        """
        CREATE INDEX runs_measured ON runs (ended_s, id, log_bytes) WHERE log_bytes IS NOT NULL
        """,
    ),
    (
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
        ) STRICT
        """,
    ),
    (
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
        ) STRICT
        """,
        """
        CREATE TABLE stray_counts (
            at_s REAL NOT NULL,
            software TEXT NOT NULL,
            processes INTEGER NOT NULL,
            strays INTEGER NOT NULL,
            ended INTEGER NOT NULL,
            PRIMARY KEY (at_s, software)
        ) STRICT
        """,
    ),
    # The service: herds without an owner, their jobs in one line, and wishes about jobs.
    (
        "ALTER TABLE herds ADD COLUMN service INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE herds ADD COLUMN env TEXT",
        "ALTER TABLE jobs ADD COLUMN place INTEGER",
        "ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN lost INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN seen_bytes INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN not_before_s REAL NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE jobs ADD COLUMN wish TEXT",
        """
        CREATE INDEX jobs_in_line ON jobs (priority DESC, place)
            WHERE state = 'queued' AND place IS NOT NULL
        """,
        "CREATE INDEX jobs_placed ON jobs (place) WHERE place IS NOT NULL",
        """
        CREATE INDEX jobs_delayed ON jobs (not_before_s)
            WHERE state = 'queued' AND place IS NOT NULL AND not_before_s > 0
        """,
        "CREATE INDEX jobs_wished ON jobs (place) WHERE wish IS NOT NULL",
        """
        CREATE INDEX jobs_open ON jobs (herd, state)
            WHERE state NOT IN ('done', 'failed', 'cancelled')
        """,
        """
        CREATE TABLE needs (
            job TEXT NOT NULL, needs TEXT NOT NULL, PRIMARY KEY (job, needs)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX needs_of ON needs (needs)",
        "CREATE TABLE flags (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
        "CREATE INDEX events_of_herd ON events (herd, seq)",
        """
        UPDATE runs SET ended_s = started_s, end = 'lost' WHERE ended_s IS NULL AND EXISTS (
            SELECT 1 FROM runs AS later WHERE later.job = runs.job AND later.attempt > runs.attempt
        )
        """,
        "CREATE UNIQUE INDEX one_live_run ON runs (job) WHERE ended_s IS NULL",
        "ALTER TABLE runs ADD COLUMN stopping TEXT",
    ),
    ("ALTER TABLE jobs ADD COLUMN said TEXT",),
    # The service runs agents: the next service continues to count how often the API was too busy
    # for a job, and the cost of a herd.
    (
        "ALTER TABLE jobs ADD COLUMN overloads INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE herds ADD COLUMN max_cost_usd REAL",
    ),
    # Deaths of the keeper while a job ran, as JSON: [deaths, alone, lived_s].
    (
        "ALTER TABLE jobs ADD COLUMN suspicion TEXT",
        """
        CREATE INDEX jobs_suspected ON jobs (priority DESC, place)
            WHERE suspicion IS NOT NULL AND state = 'queued' AND place IS NOT NULL
        """,
    ),
    # The environment of a herd is a file, no longer in `env`: its first `env_bytes` are what runs
    # inherit, and the variables of single jobs follow.
    (
        "ALTER TABLE herds ADD COLUMN env_file TEXT",
        "ALTER TABLE herds ADD COLUMN env_bytes INTEGER",
        "CREATE INDEX herds_with_env_file ON herds (env_file) WHERE env_file IS NOT NULL",
        """
        INSERT INTO flags (name, value)
            SELECT 'environments_moved', 'done' WHERE NOT EXISTS (SELECT 1 FROM herds)
        """,
    ),
    # The monotonic clock of a run, as JSON: [boot_id, started_s, uncounted_s].
    ("ALTER TABLE runs ADD COLUMN clock TEXT",),
    # The part of each run in the totals of its herd, for the summary of herds of the service.
    (
        "ALTER TABLE runs ADD COLUMN held_s REAL",
        "ALTER TABLE runs ADD COLUMN redone_s REAL",
        "ALTER TABLE runs ADD COLUMN limit_kills INTEGER",
        "ALTER TABLE runs ADD COLUMN oom_kills INTEGER",
        "ALTER TABLE runs ADD COLUMN leftovers_ended INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN residue_bytes INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE herds ADD COLUMN peak_bytes INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE herds ADD COLUMN level_changes INTEGER NOT NULL DEFAULT 0",
        # Jobs are counted for each snapshot: 20,000 in 1 ms instead of 15.
        "CREATE INDEX jobs_of_herd ON jobs (herd, state)",
    ),
    # The flags of a `ramherd run`, as JSON, for the process that continues its herd.
    ("ALTER TABLE herds ADD COLUMN settings TEXT",),
    # Accounts that an API refuses for now; the API quota of a job; and the time before which a job
    # must not start.
    (
        """
        CREATE TABLE usage_limits (
            agent TEXT NOT NULL, account TEXT NOT NULL, model TEXT NOT NULL, "window" TEXT NOT NULL,
            what TEXT NOT NULL, until_s REAL NOT NULL, is_timed INTEGER NOT NULL,
            is_default INTEGER NOT NULL, refused_probes INTEGER NOT NULL,
            PRIMARY KEY (agent, account, model)
        ) STRICT, WITHOUT ROWID
        """,
        "ALTER TABLE jobs ADD COLUMN quota TEXT",
        "ALTER TABLE jobs ADD COLUMN start_at_s REAL",
        """
        CREATE INDEX jobs_quota ON jobs (quota)
            WHERE state = 'queued' AND place IS NOT NULL AND quota IS NOT NULL
        """,
    ),
    # The price of a unit of tokens, as reported by agents.
    (
        """
        CREATE TABLE prices (
            agent TEXT NOT NULL,
            model TEXT NOT NULL,
            usd REAL NOT NULL,
            updated_s REAL NOT NULL,
            PRIMARY KEY (agent, model)
        ) STRICT
        """,
    ),
    # Commands to start for jobs that have ended, and for herds (without a job).
    (
        """
        CREATE TABLE on_done_due (
            herd TEXT NOT NULL, job TEXT NOT NULL, PRIMARY KEY (herd, job)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    # 10,000 jobs that wait for their API are passed over in 2 ms instead of 20, and the jobs of a
    # herd whose worktrees are not finished are found without reading all of its jobs (50 ms).
    (
        "DROP INDEX jobs_in_line",
        """
        CREATE INDEX jobs_in_line ON jobs (priority DESC, place, quota)
            WHERE state = 'queued' AND place IS NOT NULL
        """,
        """
        CREATE INDEX jobs_unfinished ON jobs (herd, state)
            WHERE state IN ('done', 'failed', 'cancelled') AND attempts > 0
                AND json_type(said, '$.worktree') IS NULL
                AND json_extract(spec, '$.brief.tree') IS NOT NULL
        """,
    ),
    # Jobs are numbered in the order in which they were submitted. A number is never used twice:
    # `last_number` outlives the job that has it.
    (
        "ALTER TABLE jobs ADD COLUMN number INTEGER",
        """
        UPDATE jobs SET number = numbered.number FROM (
            SELECT id, row_number() OVER (ORDER BY id) AS number FROM jobs
        ) AS numbered WHERE jobs.id = numbered.id
        """,
        "CREATE UNIQUE INDEX jobs_number ON jobs (number)",
        """
        INSERT INTO flags (name, value)
            SELECT 'last_number', last FROM (SELECT max(number) AS last FROM jobs)
            WHERE last IS NOT NULL
        """,
    ),
    # When the user paused a job: it does not start until the pause is undone.
    ("ALTER TABLE jobs ADD COLUMN paused_s REAL",),
    # The census of `ramherd watch`, and the alerts that hold.
    (
        """
        CREATE TABLE census (
            place TEXT NOT NULL,
            pid INTEGER NOT NULL,
            start_ticks INTEGER NOT NULL,
            software TEXT NOT NULL,
            kind TEXT NOT NULL,
            session INTEGER NOT NULL,
            cwd TEXT NOT NULL,
            resume TEXT NOT NULL,
            run TEXT NOT NULL,
            verdict TEXT NOT NULL,
            started_s REAL NOT NULL,
            seen_s REAL NOT NULL,
            ended_s REAL,
            bytes INTEGER NOT NULL,
            highest_bytes INTEGER NOT NULL,
            highest_s REAL NOT NULL,
            trend_bytes REAL,
            points TEXT NOT NULL DEFAULT '[]',
            PRIMARY KEY (place, pid, start_ticks)
        ) STRICT
        """,
        "CREATE INDEX census_seen ON census (seen_s)",
        """
        CREATE TABLE census_totals (
            at_s REAL PRIMARY KEY,
            agents INTEGER NOT NULL,
            servers INTEGER NOT NULL,
            tools INTEGER NOT NULL,
            strays INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            stray_bytes INTEGER NOT NULL,
            used_percent REAL NOT NULL
        ) STRICT
        """,
        "CREATE TABLE watch_alerts (key TEXT PRIMARY KEY, at_s REAL NOT NULL) STRICT",
    ),
    # The memory history: of each step its fullest moment, with the runs of that moment.
    (
        """
        CREATE TABLE memory_history (
            step_s INTEGER NOT NULL,
            start_s INTEGER NOT NULL,
            at_s INTEGER NOT NULL,
            total_bytes INTEGER NOT NULL,
            available_bytes INTEGER NOT NULL,
            budget_bytes INTEGER NOT NULL,
            used_bytes INTEGER NOT NULL,
            granted_bytes INTEGER NOT NULL,
            level TEXT NOT NULL,
            runs BLOB NOT NULL,
            PRIMARY KEY (step_s, start_s)
        ) STRICT
        """,
    ),
)

MIGRATIONS_TABLE = """
    CREATE TABLE IF NOT EXISTS migrations (
        number INTEGER PRIMARY KEY, applied_s REAL NOT NULL
    ) STRICT
"""
HAS_MIGRATIONS = "SELECT 1 FROM sqlite_master WHERE name = 'migrations'"
NEWEST_MIGRATION = "SELECT coalesce(max(number), 0) FROM migrations"
MADE = "SELECT min(applied_s) FROM migrations"
ADD_MIGRATION = "INSERT INTO migrations (number, applied_s) VALUES (?, ?)"
