"""The SQL of the service: its one line of jobs, and requests of other processes."""

from ramherd.store.sql.records import WAS_CUT_OFF

ADD_NEED = "INSERT INTO needs (job, needs) VALUES (?, ?)"
LAST_PLACE = "SELECT coalesce(max(place), 0) FROM jobs WHERE place IS NOT NULL"
HERD_ENV = "SELECT env_file, env_bytes FROM herds WHERE id = ?"
SET_ENV = "UPDATE herds SET env_file = ?, env_bytes = ? WHERE id = ?"
# Herds that have ended need no environment. A herd that was interrupted may be continued: the
# variables of its jobs are kept for a week.
IS_ENV_UNUSED = f"""
    env_file IS NOT NULL AND ended_s IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM on_done_due WHERE herd = herds.id) AND (
        ended_s < CAST(strftime('%s', 'now', '-7 days') AS INTEGER) OR NOT EXISTS (
            SELECT 1 FROM jobs WHERE herd = herds.id AND {WAS_CUT_OFF}
        )
    )
"""
UNUSED_ENV = f"SELECT env_file FROM herds WHERE id = ? AND {IS_ENV_UNUSED}"
ALL_UNUSED_ENV = f"SELECT env_file FROM herds WHERE {IS_ENV_UNUSED}"
FORGET_ENV = "UPDATE herds SET env_file = NULL, env_bytes = NULL WHERE env_file = ?"
IS_ENV_USED = "SELECT 1 FROM herds WHERE env_file = ?"
# A job that is done is never started again: its inputs are not needed.
NEEDS_INPUT = "SELECT 1 FROM jobs WHERE id = ? AND state <> 'done'"
HERD_STANDING = "SELECT ended_s IS NOT NULL, env_file FROM herds WHERE id = ?"
ENV_NAMES = """
    SELECT name, json_extract(spec, '$.env_names'), json_extract(spec, '$.env_at[0]')
    FROM jobs WHERE id = ?
"""
# Variables that an earlier ramherd kept in the store.
OLD_HERDS = "SELECT id, env FROM herds WHERE service = 1 AND ended_s IS NULL"
OLD_SPECS = """
    SELECT id, spec FROM jobs WHERE herd = ? AND json_extract(spec, '$.env') <> '{}'
"""
SET_SPEC = "UPDATE jobs SET spec = ? WHERE id = ?"
DROP_OLD_ENVS = "UPDATE herds SET env = NULL WHERE env IS NOT NULL"
DROP_OLD_VARIABLES = """
    UPDATE jobs SET spec = json_remove(spec, '$.env') WHERE json_type(spec, '$.env') IS NOT NULL
"""

STANDING = (
    "spec, jobs.state, jobs.reason, jobs.attempts, failures, lost, seen_bytes, interrupted, place, "
    "updated_s, overloads, suspicion, not_before_s"
)
# A delay longer than any that we set comes from a clock that jumped back: it is over.
IN_LINE = f"""
    SELECT {STANDING} FROM jobs
    WHERE state = 'queued' AND place IS NOT NULL AND priority = :priority AND wish IS NULL
        AND paused_s IS NULL AND (not_before_s <= :now OR not_before_s > :now + :longest)
        AND (start_at_s IS NULL OR start_at_s <= :now)
        AND (quota IS NULL OR quota NOT IN (SELECT value FROM json_each(:closed)))
    ORDER BY place LIMIT :most
"""
# Steps from one priority to the next in the index, however many jobs each has.
PRIORITIES = """
    WITH RECURSIVE found (priority) AS (
        SELECT max(priority) FROM jobs WHERE state = 'queued' AND place IS NOT NULL
        UNION ALL
        SELECT (
            SELECT max(priority) FROM jobs
            WHERE state = 'queued' AND place IS NOT NULL AND priority < found.priority
        ) FROM found WHERE priority IS NOT NULL
    )
    SELECT priority FROM found WHERE priority IS NOT NULL LIMIT ?
"""
NEXT_DELAYED = """
    SELECT min(not_before_s) FROM jobs
    WHERE state = 'queued' AND place IS NOT NULL AND not_before_s > 0 AND not_before_s > ?
"""
# Usually there are none, however long the queue is.
SUSPECTED = f"""
    SELECT {STANDING} FROM jobs INDEXED BY jobs_suspected
    WHERE suspicion IS NOT NULL AND state = 'queued' AND place IS NOT NULL AND wish IS NULL
        AND paused_s IS NULL AND (not_before_s <= :now OR not_before_s > :now + :longest)
    ORDER BY priority DESC, place
"""
# The API quotas of queued jobs.
QUOTAS = """
    SELECT DISTINCT quota FROM jobs
    WHERE state = 'queued' AND place IS NOT NULL AND quota IS NOT NULL
"""
SHIFT_DELAYS = """
    UPDATE jobs SET not_before_s = not_before_s + ?
    WHERE state = 'queued' AND place IS NOT NULL AND not_before_s > 0
"""
GET_STANDING = f"SELECT {STANDING} FROM jobs WHERE id = ?"
WHO_NEEDS = f"""
    SELECT {STANDING} FROM needs JOIN jobs ON jobs.id = needs.job
    WHERE needs.needs = ? AND jobs.state = 'waiting'
"""
STATES_NEEDED = """
    SELECT jobs.id, jobs.name, jobs.state FROM needs JOIN jobs ON jobs.id = needs.needs
    WHERE needs.job = ?
"""
WISHED = """
    SELECT id, wish, place FROM jobs WHERE wish IS NOT NULL AND place IS NOT NULL AND place > ?
    ORDER BY place LIMIT ?
"""
HAS_ENDED = "SELECT 1 FROM herds WHERE id = ? AND ended_s IS NOT NULL"
IS_OPEN = """
    SELECT 1 FROM jobs WHERE herd = ? AND state NOT IN ('done', 'failed', 'cancelled') LIMIT 1
"""
LIVE_RUNS = f"""
    SELECT runs.id, runs.attempt, runs.started_s, runs.clock, runs.stopping, pens.id, pens.record,
        {STANDING}
    FROM runs JOIN jobs ON jobs.id = runs.job LEFT JOIN pens ON pens.run = runs.id
    WHERE runs.ended_s IS NULL AND jobs.place IS NOT NULL
"""

# Jobs that have not started, or are to start again.
NOT_STARTED = "place IS NOT NULL AND state IN ('queued', 'waiting')"
PAUSE_JOB = f"UPDATE jobs SET paused_s = ? WHERE id = ? AND {NOT_STARTED}"
RESUME_JOB = "UPDATE jobs SET paused_s = NULL WHERE id = ? AND paused_s IS NOT NULL"
EDIT_JOB = f"""
    UPDATE jobs SET priority = coalesce(:priority, priority), spec = json_set(
        spec, '$.priority', coalesce(:priority, priority),
        '$.memory_bytes', coalesce(:memory_bytes, json_extract(spec, '$.memory_bytes'))
    ) WHERE id = :job AND {NOT_STARTED}
"""

SET_STOPPING = "UPDATE runs SET stopping = ? WHERE id = ? AND ended_s IS NULL"

IS_OPEN_JOB = """
    SELECT id FROM jobs WHERE id = ? AND place IS NOT NULL
        AND state NOT IN ('done', 'failed', 'cancelled')
"""
OPEN_JOBS = """
    SELECT id FROM jobs WHERE herd = ? AND place IS NOT NULL
        AND state NOT IN ('done', 'failed', 'cancelled')
"""
WISH_JOB = """
    UPDATE jobs SET wish = ? WHERE id = ? AND place IS NOT NULL
        AND state NOT IN ('done', 'failed', 'cancelled')
"""
WISH_HERD = """
    UPDATE jobs SET wish = ? WHERE herd = ? AND place IS NOT NULL
        AND state NOT IN ('done', 'failed', 'cancelled')
"""
# Jobs that wait for the user.
BLOCKED = """
    (state = 'waiting' AND json_extract(reason, '$.why') IN ('merge_conflict', 'cannot_merge'))
"""
# A job of the herd that goes on without the user: now, or because all jobs before it have ended.
IS_ACTIVE = "SELECT 1 FROM jobs WHERE herd = ? AND state IN ('queued', 'running', 'held') LIMIT 1"
IS_NEXT = f"""
    SELECT 1 FROM jobs WHERE herd = ? AND state = 'waiting' AND NOT {BLOCKED} AND NOT EXISTS (
        SELECT 1 FROM needs JOIN jobs AS before ON before.id = needs.needs
        WHERE needs.job = jobs.id AND before.state NOT IN ('done', 'failed', 'cancelled')
    ) LIMIT 1
"""
RETRY_JOB = f"""
    UPDATE jobs SET state = ?, reason = ?, failures = 0, lost = 0, overloads = 0, suspicion = NULL,
        not_before_s = 0, wish = NULL, updated_s = ?
    WHERE id = ? AND (state IN ('failed', 'cancelled') OR {BLOCKED})
"""
CAN_RETRY = f"SELECT 1 FROM jobs WHERE id = ? AND (state IN ('failed', 'cancelled') OR {BLOCKED})"
# The next run resumes the last session, whatever its result: earlier denials no longer count.
ALLOW_JOB = """
    UPDATE jobs SET state = ?, reason = ?, failures = 0, lost = 0, overloads = 0, suspicion = NULL,
        not_before_s = 0, wish = NULL, updated_s = ?, interrupted = 1,
        spec = json_set(spec, '$.brief.allow', json(?)),
        said = json_set(said, '$.past.denied', json('[]'))
    WHERE id = ? AND state IN ('done', 'failed', 'cancelled')
"""
CAN_ALLOW = "SELECT 1 FROM jobs WHERE id = ? AND state IN ('done', 'failed', 'cancelled')"
STATE_AND_SPEC = "SELECT state, spec FROM jobs WHERE id = ?"
HERD_OF_JOB = "SELECT herd FROM jobs WHERE id = ?"
OPEN_HERD_AGAIN = "UPDATE herds SET ended_s = NULL, summary = NULL WHERE id = ?"
FORGET_LOG_BYTES = """
    UPDATE runs SET log_bytes = NULL WHERE job IN (SELECT id FROM jobs WHERE herd = ?)
"""
CANCELLED_FOR = """
    SELECT jobs.id FROM needs JOIN jobs ON jobs.id = needs.job
    WHERE needs.needs = ? AND jobs.state = 'cancelled'
        AND json_extract(jobs.reason, '$.why') = 'dependency_failed'
"""

SET_FLAG = """
    INSERT INTO flags (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
GET_FLAG = "SELECT value FROM flags WHERE name = ?"
DROP_FLAG = "DELETE FROM flags WHERE name = ?"
FLAGS_LIKE = "SELECT name, value FROM flags WHERE name LIKE ?"

SAID = "SELECT said FROM jobs WHERE id = ?"
HERD_LIMIT = "SELECT max_cost_usd FROM herds WHERE id = ?"
# The cost of runs that have ended.
HERD_COST = """
    SELECT coalesce(sum(json_extract(said, '$.past.spent_usd')), 0) FROM jobs WHERE herd = ?
"""
OPEN_AGENTS = """
    SELECT id, json_extract(spec, '$.brief.agent') FROM jobs
    WHERE herd = ? AND state NOT IN ('done', 'failed', 'cancelled')
        AND json_extract(spec, '$.brief') IS NOT NULL
"""
# Jobs that ran in a worktree and have ended, until the fate of the worktree is recorded.
UNFINISHED = """
    state IN ('done', 'failed', 'cancelled') AND attempts > 0
        AND json_type(said, '$.worktree') IS NULL
        AND json_extract(spec, '$.brief.tree') IS NOT NULL
"""
UNFINISHED_OF_HERD = f"SELECT 1 FROM jobs WHERE herd = ? AND {UNFINISHED} LIMIT 1"
UNFINISHED_JOBS_OF_HERD = f"SELECT spec FROM jobs WHERE herd = ? AND {UNFINISHED}"
ALL_UNFINISHED = f"""
    SELECT spec FROM jobs WHERE {UNFINISHED}
        AND herd IN (SELECT id FROM herds WHERE service = 1 AND ended_s IS NULL)
"""
# A `ramherd run` that was killed has no summary. Its jobs that had not ended may be continued.
UNFINISHED_OF_DEAD = f"""
    SELECT spec FROM jobs WHERE {UNFINISHED}
        AND json_extract(reason, '$.why') <> 'supervisor_lost'
        AND herd IN (
            SELECT id FROM herds WHERE service = 0 AND ended_s IS NOT NULL AND summary IS NULL
        )
"""
# A job cannot wait for these: they have to be retried first.
NEEDS_ENDED = """
    SELECT jobs.name, jobs.state FROM needs JOIN jobs ON jobs.id = needs.needs
    WHERE needs.job = ? AND jobs.state IN ('failed', 'cancelled') LIMIT 1
"""
NEEDS_UNDONE = f"""
    SELECT 1 FROM needs JOIN jobs ON jobs.id = needs.needs
    WHERE needs.job = ? AND (jobs.state <> 'done' OR ({UNFINISHED})) LIMIT 1
"""
RAISE_HERD_PEAK = "UPDATE herds SET peak_bytes = max(peak_bytes, ?) WHERE id = ?"
ADD_LEVEL_CHANGE = "UPDATE herds SET level_changes = level_changes + 1 WHERE id = ?"
HERD_TOTALS = """
    SELECT herds.peak_bytes, level_changes, round(total(held_s), 3), round(total(redone_s), 3),
        coalesce(sum(limit_kills), 0), coalesce(sum(oom_kills), 0),
        coalesce(sum(leftovers_ended), 0), coalesce(sum(residue_bytes), 0)
    FROM herds LEFT JOIN jobs ON jobs.herd = herds.id LEFT JOIN runs ON runs.job = jobs.id
    WHERE herds.id = ? GROUP BY herds.id
"""
