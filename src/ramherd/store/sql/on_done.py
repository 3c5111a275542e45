"""The SQL of `on_done` commands that are to be started."""

from ramherd.store.sql.service import UNFINISHED

DROP = "DELETE FROM on_done_due WHERE herd = ? AND job = ?"
# A job is not due until its worktree is finished.
DUE_JOBS = f"""
    SELECT due.herd, due.job FROM on_done_due AS due JOIN jobs ON jobs.id = due.job
    WHERE due.herd = ? AND NOT ({UNFINISHED}) LIMIT ?
"""
DUE_JOBS_OF_SERVICE = f"""
    SELECT due.herd, due.job FROM on_done_due AS due JOIN jobs ON jobs.id = due.job
        JOIN herds ON herds.id = due.herd
    WHERE herds.service = 1 AND NOT ({UNFINISHED}) LIMIT ?
"""
DUE_HERDS_OF_SERVICE = """
    SELECT due.herd, due.job FROM on_done_due AS due JOIN herds ON herds.id = due.herd
    WHERE due.job = '' AND herds.service = 1 LIMIT ?
"""
IS_HERD_DUE = "SELECT 1 FROM on_done_due WHERE herd = ? AND job = ''"
HERD_COMMAND = "SELECT json_extract(settings, '$.on_done') FROM herds WHERE id = ?"
FIRST_JOB = "SELECT id FROM jobs WHERE herd = ? ORDER BY seq LIMIT 1"
