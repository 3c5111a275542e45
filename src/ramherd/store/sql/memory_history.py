"""The SQL of the memory history."""

SET_MOMENT = """
    INSERT INTO memory_history (
        step_s, start_s, at_s, total_bytes, available_bytes, budget_bytes, used_bytes,
        granted_bytes, level, runs
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (step_s, start_s) DO UPDATE SET at_s = excluded.at_s,
        total_bytes = excluded.total_bytes, available_bytes = excluded.available_bytes,
        budget_bytes = excluded.budget_bytes, used_bytes = excluded.used_bytes,
        granted_bytes = excluded.granted_bytes, level = excluded.level, runs = excluded.runs
    WHERE excluded.used_bytes >= memory_history.used_bytes
"""
MOMENTS = """
    SELECT at_s, total_bytes, available_bytes, budget_bytes, used_bytes, granted_bytes, level, runs
    FROM memory_history WHERE step_s = ? AND start_s BETWEEN ? AND ? ORDER BY start_s
"""
DROP_OLD_MOMENTS = "DELETE FROM memory_history WHERE step_s = ? AND start_s < ?"
# A clock that was set back must not keep moments of the future.
DROP_LATER_MOMENTS = "DELETE FROM memory_history WHERE start_s > ?"
# The newest that fit: a row has about 100 bytes besides its runs.
DROP_MANY_MOMENTS = """
    DELETE FROM memory_history WHERE start_s <= (
        SELECT max(start_s) FROM (
            SELECT start_s, sum(length(runs) + 100) OVER (ORDER BY start_s DESC) AS size
            FROM memory_history
        ) AS sizes WHERE size > ?
    )
"""
NUMBER_OF_JOB = "SELECT number FROM jobs WHERE id = ?"
JOB_OF_NUMBER = """
    SELECT id, name, herd, json_extract(spec, '$.brief.agent') FROM jobs WHERE number = ?
"""
