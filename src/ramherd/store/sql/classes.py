"""The SQL of what was learned per class."""

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
