"""The SQL of lists of herds, jobs, runs and events, in pages."""

HERD_COLUMNS = "herds.id, created_s, ended_s, service, summary"
HERDS = f"SELECT {HERD_COLUMNS} FROM herds WHERE id < ? ORDER BY id DESC LIMIT ?"
HERD = f"SELECT {HERD_COLUMNS} FROM herds WHERE id = ?"
# The last characters of an id, compared as they are: no pattern.
HERDS_ENDING = "SELECT id FROM herds WHERE substr(id, -length(:end)) = :end ORDER BY id DESC"
HERD_COUNTS = "SELECT state, count(*) FROM jobs WHERE herd = ? GROUP BY state"
COUNTS = """
    SELECT state, count(*) FROM jobs
    WHERE herd IN (SELECT id FROM herds WHERE service = 1) GROUP BY state
"""
OLDEST_QUEUED = "SELECT min(updated_s) FROM jobs WHERE state = 'queued' AND place IS NOT NULL"
JOB_COLUMNS = """
    jobs.id, herd, name, state, jobs.reason, attempts, failures, priority, updated_s, wish,
    json_extract(spec, '$.label'), said, place, quota, number
"""
JOBS = f"""
    SELECT {JOB_COLUMNS} FROM jobs
    WHERE (:herd IS NULL OR herd = :herd) AND (:state IS NULL OR state = :state) AND id > :after
    ORDER BY id LIMIT :most
"""
JOB = f"SELECT {JOB_COLUMNS}, spec FROM jobs WHERE id = ?"
RUNS_OF_JOB = """
    SELECT id, attempt, started_s, ended_s, "end", exit_code, signal, reason, peak_bytes,
        held_s
    FROM runs
    WHERE job = ? ORDER BY attempt
"""
EVENTS_AFTER = """
    SELECT seq, at_s, kind, herd, job, run, node, reason FROM events
    WHERE seq > :after AND (:herd IS NULL OR herd = :herd) AND (:job IS NULL OR job = :job)
    ORDER BY seq LIMIT :most
"""
EVENT_ENDS = "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM events"
