"""The SQL of interrupted herds, and of the process that continues them."""

from ramherd.store.sql.records import WAS_CUT_OFF
from ramherd.store.sql.service import STANDING

# Sessions of `ramherd exec` have no settings: they cannot be continued.
STORED_HERD = """
    SELECT owner, boot_id, pid, start_ticks, service, ended_s IS NOT NULL, max_cost_usd, settings,
        env_file, env_bytes
    FROM herds WHERE id = ?
"""
NEWEST_INTERRUPTED = f"""
    SELECT id FROM herds WHERE ended_s IS NOT NULL AND (service OR settings IS NOT NULL)
        AND EXISTS (SELECT 1 FROM jobs WHERE herd = herds.id AND {WAS_CUT_OFF})
    ORDER BY created_s DESC, id DESC LIMIT 1
"""
# Of two processes that claim a herd, the second finds that it has not ended.
CLAIM_HERD = """
    UPDATE herds SET owner = ?, boot_id = ?, pid = ?, start_ticks = ?, service = ?,
        ended_s = NULL, summary = NULL
    WHERE id = ? AND ended_s IS NOT NULL
"""
LEAVE_LINE = "UPDATE jobs SET place = NULL WHERE herd = ? AND place IS NOT NULL"
JOIN_LINE = "UPDATE jobs SET place = ? + seq WHERE herd = ?"
ADD_NEED = """
    INSERT INTO needs (job, needs) VALUES (?, ?) ON CONFLICT (job, needs) DO NOTHING
"""
SET_COST_LIMIT = "UPDATE herds SET max_cost_usd = ? WHERE id = ?"
STATUSES = f"SELECT {STANDING.replace('place', 'seq')} FROM jobs WHERE herd = ? ORDER BY seq"
CONTINUE_JOB = """
    UPDATE jobs SET state = ?, reason = ?, not_before_s = 0, wish = NULL, updated_s = ?
    WHERE id = ? AND state IN ('cancelled', 'waiting')
"""
# The last report of an agent's run, as far as it was recorded before the run was lost.
COUNT_LOST_RUNS = """
    UPDATE jobs SET said = json_remove(
        json_set(said, '$.past', json_extract(said, '$.run.leaves')), '$.run.leaves'
    )
    WHERE herd = ? AND json_type(said, '$.run.leaves') = 'object'
"""
UNCOUNTED_RUNS = """
    SELECT job, runs.id, attempt FROM runs JOIN jobs ON jobs.id = runs.job
    WHERE herd = ? AND attempt = attempts AND json_type(said, '$.run.leaves') = 'object'
        AND runs."end" = 'lost'
"""
SPEC = "SELECT spec FROM jobs WHERE id = ?"
