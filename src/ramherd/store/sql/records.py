"""The SQL of herds, jobs, runs, pens, events, samples and logs."""

# A job that may be continued: `INTERRUPTIONS` of `decide/resumption.py`.
WAS_CUT_OFF = """
    state = 'cancelled'
        AND json_extract(reason, '$.why') IN ('interrupted', 'supervisor_lost', 'no_access')
"""

ADD_HERD = """
    INSERT INTO herds (
        id, created_s, owner, boot_id, pid, start_ticks, service, max_cost_usd, env_file, env_bytes,
        settings
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
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
# A run of a session has no clock, because it has no timeout.
NEWEST_BATCH = """
    SELECT id FROM herds WHERE NOT EXISTS (
        SELECT 1 FROM jobs JOIN runs ON runs.job = jobs.id
        WHERE jobs.herd = herds.id AND runs.clock IS NULL
    ) ORDER BY created_s DESC, id DESC LIMIT 1
"""

ADD_JOB = """
    INSERT INTO jobs (
        id, herd, name, seq, spec, state, reason, updated_s, priority, place, quota, start_at_s,
        number
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# The newest jobs may have been pruned: the flag has their numbers.
LAST_NUMBER = """
    SELECT coalesce(max(number), 0) FROM (
        SELECT max(number) AS number FROM jobs
        UNION ALL
        SELECT CAST(value AS INTEGER) FROM flags WHERE name = 'last_number'
    ) AS numbers
"""
# Numbers rows that an earlier ramherd added, or that were restored.
NUMBER_JOBS = """
    UPDATE jobs SET number = numbered.number FROM (
        SELECT id, ? + row_number() OVER (ORDER BY id) AS number FROM jobs WHERE number IS NULL
    ) AS numbered WHERE jobs.id = numbered.id
"""
NUMBERS = "SELECT id, number FROM jobs WHERE herd = ? AND number IS NOT NULL"
SET_SAID = "UPDATE jobs SET said = ? WHERE id = ?"
SET_ERROR = "UPDATE jobs SET said = json_set(coalesce(said, '{}'), '$.error', ?) WHERE id = ?"
ANSWERS = "SELECT id, json_extract(said, '$.result') FROM jobs WHERE herd = ?"
SET_BASE = """
    UPDATE jobs SET spec = json_set(
        spec, '$.brief.tree.commit', ?, '$.brief.tree.parents', json('[]')
    ) WHERE id = ?
"""
# A job that has ended does not change, and only its newest run changes it.
SET_JOB = """
    UPDATE jobs SET state = :state, reason = :reason, attempts = :attempts, failures = :failures,
        lost = :lost, seen_bytes = :seen_bytes, interrupted = :interrupted,
        overloads = :overloads, suspicion = :suspicion, not_before_s = :not_before_s,
        updated_s = :now,
        wish = CASE
            WHEN :final OR (wish = 'recycle' AND :state = 'queued') THEN NULL ELSE wish
        END
    WHERE id = :id AND state NOT IN ('done', 'failed', 'cancelled') AND attempts <= :attempts
"""
ADD_ON_DONE_OF_JOB = """
    INSERT INTO on_done_due (herd, job) VALUES (?, ?) ON CONFLICT (herd, job) DO NOTHING
"""
# A herd that was interrupted may be continued: it has not ended.
ADD_ON_DONE_OF_HERD = f"""
    INSERT INTO on_done_due (herd, job)
        SELECT id, '' FROM herds WHERE id = ? AND json_extract(settings, '$.on_done') IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM jobs WHERE herd = herds.id AND {WAS_CUT_OFF})
    ON CONFLICT (herd, job) DO NOTHING
"""
LOSE_JOBS = """
    UPDATE jobs SET state = 'cancelled', reason = ?, updated_s = ?,
        interrupted = interrupted OR state IN ('running', 'held')
    WHERE herd = ? AND state NOT IN ('done', 'failed', 'cancelled')
"""
FIND_JOB = """
    SELECT id, name, state FROM jobs
    WHERE herd = ? AND (name = ? OR id = ?)
"""
FIND_JOB_BY_ID = "SELECT id, name, state FROM jobs WHERE id = ?"
FIND_JOB_BY_NUMBER = "SELECT id, name, state FROM jobs WHERE number = ?"
FIND_NEWEST_JOB = "SELECT id, name, state FROM jobs WHERE name = ? ORDER BY id DESC LIMIT 1"
NEWEST_JOBS = "SELECT number, name, state FROM jobs ORDER BY number DESC LIMIT ?"
JOB_NAMES = "SELECT name FROM jobs WHERE herd = ? ORDER BY seq LIMIT ?"
JOB_STATE = "SELECT state FROM jobs WHERE id = ?"
STORED_JOB = "SELECT spec, state, said FROM jobs WHERE id = ?"

ADD_RUN = """
    INSERT INTO runs (id, job, attempt, started_s, available_before_bytes, clock)
    VALUES (?, ?, ?, ?, ?, ?)
"""
SET_RUN_CLOCK = "UPDATE runs SET clock = ? WHERE id = ?"
END_RUN = """
    UPDATE runs SET ended_s = ?, "end" = ?, exit_code = ?, signal = ?, reason = ?, peak_bytes = ?,
        available_least_bytes = ?, available_after_bytes = ?
    WHERE id = ? AND ended_s IS NULL
"""
SET_ACCOUNT = """
    UPDATE runs SET held_s = ?, redone_s = ?, limit_kills = ?, oom_kills = ? WHERE id = ?
"""
ADD_LEFTOVERS = "UPDATE runs SET leftovers_ended = leftovers_ended + ? WHERE id = ?"
ADD_RESIDUE = "UPDATE runs SET residue_bytes = residue_bytes + ? WHERE id = ?"
# Residue is measured when a pen is removed, which may be after the end of the herd.
ADD_RESIDUE_OF_HERD = """
    UPDATE herds SET summary = json_set(
        summary, '$.residue_bytes', coalesce(json_extract(summary, '$.residue_bytes'), 0) + ?
    )
    WHERE summary IS NOT NULL AND service AND id = (
        SELECT herd FROM jobs WHERE id = (SELECT job FROM runs WHERE id = ?)
    )
"""
LOSE_RUNS = """
    UPDATE runs SET ended_s = ?, "end" = 'lost', reason = ?
    WHERE ended_s IS NULL AND job IN (SELECT id FROM jobs WHERE herd = ?)
    RETURNING id
"""
NEWEST_RUN = "SELECT id FROM runs WHERE job = ? ORDER BY attempt DESC LIMIT 1"

ADD_EVENT = """
    INSERT INTO events (at_s, kind, herd, job, run, reason) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq
"""
EVENTS = """
    SELECT events.seq, at_s, kind, events.herd, job, run, events.reason, jobs.name
    FROM events LEFT JOIN jobs ON jobs.id = events.job
    WHERE events.seq > :after AND (:job IS NULL OR job = :job)
        AND (:herd IS NULL OR events.herd = :herd
            OR (events.herd = '' AND at_s >= :machine_since_s))
        AND (:since_s IS NULL OR at_s >= :since_s)
    ORDER BY events.seq
"""
TRIM_EVENTS = "DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?"
ADD_SAMPLE = "INSERT INTO samples (run, at_s, used_bytes) VALUES (?, ?, ?)"
TRIM_SAMPLES = "DELETE FROM samples WHERE rowid <= (SELECT max(rowid) FROM samples) - ?"

# `id` is the run that the pen was made for, `run` the one that lives in it: a warm process is
# passed from run to run. A fleet's row has its owner as `id`, and no run.
ADD_PEN = "INSERT INTO pens (id, herd, run, record) VALUES (?, ?, ?, ?)"
SET_PEN = "UPDATE pens SET record = ? WHERE id = ?"
REASSIGN_PEN = "UPDATE pens SET run = ? WHERE id = ?"
DROP_PEN = "DELETE FROM pens WHERE id = ?"
PENS_OF_HERD = "SELECT id, run, record FROM pens WHERE herd = ?"

HAS_PEN = "EXISTS (SELECT 1 FROM pens WHERE pens.id = runs.id)"

# `log_bytes` is set for runs that have ended: NULL before they are measured, 0 once their output is
# removed. While a pen exists, the directory is in use.
NOT_MEASURED = f"""
    SELECT runs.id FROM runs
    WHERE runs.log_bytes IS NULL AND runs.ended_s IS NOT NULL AND NOT {HAS_PEN}
    LIMIT ?
"""
# Another program may have measured the same run, and then removed its output.
SET_LOG_BYTES = "UPDATE runs SET log_bytes = ? WHERE id = ? AND log_bytes IS NULL"
RELEASE_LOG = "UPDATE runs SET log_bytes = 0 WHERE id = ?"
LOGS_BYTES = "SELECT coalesce(sum(log_bytes), 0) FROM runs WHERE log_bytes IS NOT NULL"
OLDEST_LOGS = """
    SELECT id, ended_s, log_bytes FROM runs
    WHERE log_bytes > 0 AND (ended_s, id) > (?, ?) ORDER BY ended_s, id LIMIT ?
"""
# Runs that print, or were not measured since they ended, each with its ramherd.
GROWING_LOGS = """
    SELECT runs.id, CASE WHEN herds.service THEN '' ELSE herds.owner END
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.log_bytes IS NULL AND runs.ended_s IS {ended}
"""
UNMEASURED_LOGS = (GROWING_LOGS.format(ended="NULL"), GROWING_LOGS.format(ended="NOT NULL"))
# Runs of herds that are over: only their records may be removed, except those of some jobs.
OLDEST_RUNS = """
    SELECT runs.id, runs.ended_s, runs.log_bytes
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.log_bytes IS NOT NULL AND herds.ended_s IS NOT NULL
        AND runs.ended_s < ? AND (runs.ended_s, runs.id) > (?, ?)
        AND jobs.id NOT IN (SELECT value FROM json_each(?))
    ORDER BY runs.ended_s, runs.id LIMIT ?
"""
# Jobs that have a worktree, until its removal is recorded.
WORKTREES = """
    SELECT id, json_extract(spec, '$.brief.tree.path') FROM jobs
    WHERE json_extract(spec, '$.brief.tree.path') IS NOT NULL
        AND json_type(said, '$.worktree') IS NOT 'null'
"""
ENDED_BEFORE = """
    SELECT count(*) FROM jobs JOIN herds ON herds.id = jobs.herd
    WHERE jobs.id IN (SELECT value FROM json_each(?)) AND herds.ended_s IS NOT NULL
        AND jobs.updated_s < ?
"""
HAS_JOB = "SELECT 1 FROM jobs WHERE id = ?"
OLDEST_ENDED = f"""
    SELECT runs.id, runs.ended_s, herds.ended_s IS NOT NULL
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.ended_s IS NOT NULL AND NOT {HAS_PEN}
    ORDER BY runs.ended_s, runs.id
"""
# A run whose output was removed has no directory any more.
HAS_DIRECTORY = "SELECT 1 FROM runs WHERE id = ? AND log_bytes IS NOT 0"
JOB_OF_RUN = "SELECT job, herd FROM runs JOIN jobs ON jobs.id = runs.job WHERE runs.id = ?"
DROP_RUN = "DELETE FROM runs WHERE id = ?"
DROP_SAMPLES = "DELETE FROM samples WHERE run = ?"
DROP_EVENTS = "DELETE FROM events WHERE job = ? AND run = ?"
# A job is removed with its last run, a herd with its last job that ran.
DROP_JOB = "DELETE FROM jobs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE job = jobs.id)"
DROP_NEEDS = "DELETE FROM needs WHERE job = ?"
HAS_RUNS = "SELECT 1 FROM runs JOIN jobs ON jobs.id = runs.job WHERE jobs.herd = ? LIMIT 1"
DROP_HERD = (
    "DELETE FROM on_done_due WHERE herd = ?",
    "DELETE FROM needs WHERE job IN (SELECT id FROM jobs WHERE herd = ?)",
    "DELETE FROM events WHERE job IN (SELECT id FROM jobs WHERE herd = ?)",
    "DELETE FROM jobs WHERE herd = ?",
    "DELETE FROM herds WHERE id = ?",
)

# A run is not over while its pen exists.
RUN_STATE = f"""
    SELECT (runs.ended_s IS NOT NULL OR herds.ended_s IS NOT NULL) AND NOT {HAS_PEN},
        herds.service, herds.owner, herds.boot_id, herds.pid, herds.start_ticks
    FROM runs JOIN jobs ON jobs.id = runs.job JOIN herds ON herds.id = jobs.herd
    WHERE runs.id = ?
"""
