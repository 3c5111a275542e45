"""The SQL of lists of herds, jobs, runs and events, in pages."""

HERD_COLUMNS = "herds.id, created_s, ended_s, service, summary"
HERDS = f"SELECT {HERD_COLUMNS} FROM herds WHERE id < ? ORDER BY id DESC LIMIT ?"
HERD = f"SELECT {HERD_COLUMNS} FROM herds WHERE id = ?"
# The last characters of an id, compared literally, not as a pattern.
HERDS_ENDING = "SELECT id FROM herds WHERE substr(id, -length(:end)) = :end ORDER BY id DESC"
HERD_COUNTS = "SELECT state, count(*) FROM jobs WHERE herd = ? GROUP BY state"
COUNTS = """
    SELECT state, count(*) FROM jobs
    WHERE herd IN (SELECT id FROM herds WHERE service = 1) GROUP BY state
"""
OLDEST_QUEUED = "SELECT min(updated_s) FROM jobs WHERE state = 'queued' AND place IS NOT NULL"
# With the newest run of each job, and the last sample of a live run.
JOB_COLUMNS = """
    jobs.id, herd, name, state, jobs.reason, attempts, failures, priority, updated_s, wish,
    json_extract(spec, '$.label'), said, place, quota, number, json_extract(spec, '$.after'),
    paused_s, start_at_s, not_before_s,
    runs.started_s, runs.ended_s, runs.exit_code, runs.signal, runs.peak_bytes,
    CASE WHEN runs.id IS NOT NULL AND runs.ended_s IS NULL THEN (
        SELECT used_bytes FROM samples WHERE samples.run = runs.id ORDER BY rowid DESC LIMIT 1
    ) END
"""
WITH_RUN = "jobs LEFT JOIN runs ON runs.job = jobs.id AND runs.attempt = jobs.attempts"
JOBS = f"""
    SELECT {JOB_COLUMNS} FROM {WITH_RUN}
    WHERE (:herd IS NULL OR herd = :herd) AND (:state IS NULL OR state = :state)
        AND jobs.id > :after
    ORDER BY jobs.id LIMIT :most
"""
# Herds that have not ended, or not long ago: the indexes of their jobs are small.
IS_RECENT = "(SELECT id FROM herds WHERE ended_s IS NULL OR ended_s >= :since_s)"
LIVE_JOBS = f"""
    SELECT {JOB_COLUMNS} FROM {WITH_RUN}
    WHERE herd IN (SELECT id FROM herds WHERE ended_s IS NULL) AND state IN ('running', 'held')
    ORDER BY jobs.id LIMIT :most
"""
WAITING_JOBS = f"""
    SELECT {JOB_COLUMNS} FROM {WITH_RUN}
    WHERE herd IN (SELECT id FROM herds WHERE ended_s IS NULL) AND state IN ('queued', 'waiting')
    ORDER BY state, priority DESC, place, jobs.id LIMIT :most
"""
ENDED_JOBS = f"""
    SELECT {JOB_COLUMNS} FROM {WITH_RUN}
    WHERE herd IN {IS_RECENT} AND state IN ('done', 'failed', 'cancelled')
        AND updated_s >= :since_s
    ORDER BY state = 'failed' DESC, updated_s DESC LIMIT :most
"""
RECENT_COUNTS = f"SELECT state, count(*) FROM jobs WHERE herd IN {IS_RECENT} GROUP BY state"
NEWEST_EVENTS = """
    SELECT events.seq, events.at_s, kind, events.herd, events.job, run, node, events.reason,
        coalesce(jobs.name, ''), jobs.number
    FROM events LEFT JOIN jobs ON jobs.id = events.job
    WHERE events.seq > :after ORDER BY events.seq DESC LIMIT :most
"""
JOB = f"SELECT {JOB_COLUMNS}, spec FROM {WITH_RUN} WHERE jobs.id = ?"
# The jobs that a job waits for, if they are not done.
UNDONE_NAMES = """
    SELECT name FROM jobs WHERE state <> 'done' AND name IN (
        SELECT value FROM json_each((SELECT json_extract(spec, '$.after') FROM jobs WHERE id = ?))
    ) AND herd = ? ORDER BY seq
"""
RUNS_OF_JOB = """
    SELECT id, attempt, started_s, ended_s, "end", exit_code, signal, reason, peak_bytes,
        held_s
    FROM runs
    WHERE job = ? ORDER BY attempt
"""
# A pause of the whole service names no herd: it concerns every herd.
EVENTS_AFTER = """
    SELECT seq, at_s, kind, herd, job, run, node, reason FROM events
    WHERE seq > :after AND (:herd IS NULL OR herd IN (:herd, '')) AND (:job IS NULL OR job = :job)
    ORDER BY seq LIMIT :most
"""
EVENT_ENDS = "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM events"
