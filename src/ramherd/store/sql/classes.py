"""The SQL of learned values: estimates for classes of jobs, and token prices of models."""

GET_CLASS = "SELECT runs, covered, recent FROM classes WHERE (agent, project, label) = (?, ?, ?)"
SET_CLASS = """
    INSERT INTO classes (agent, project, label, runs, covered, recent, updated_s)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (agent, project, label) DO UPDATE SET runs = excluded.runs,
        covered = excluded.covered, recent = excluded.recent, updated_s = excluded.updated_s
"""
CLASSES = """
    SELECT agent, project, label, runs, covered, recent, updated_s FROM classes
    ORDER BY updated_s DESC
"""
PRICES = "SELECT agent, model, usd FROM prices"
SET_PRICE = """
    INSERT INTO prices (agent, model, usd, updated_s) VALUES (?, ?, ?, ?)
    ON CONFLICT (agent, model) DO UPDATE SET usd = excluded.usd, updated_s = excluded.updated_s
"""
JOB_COSTS = """
    SELECT json_extract(spec, '$.brief.agent') AS agent,
        avg(json_extract(said, '$.past.spent_usd')), count(*)
    FROM jobs
    WHERE state = 'done' AND json_extract(said, '$.past.spent_usd') > 0
        AND json_extract(spec, '$.brief.agent') IS NOT NULL
    GROUP BY agent ORDER BY agent
"""
