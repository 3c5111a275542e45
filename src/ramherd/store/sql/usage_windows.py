"""The SQL of accounts that an API refuses for now."""

SET_WINDOW = """
    INSERT INTO usage_limits (
        agent, account, model, "window", what, until_s, is_timed, is_default,
        refused_probes
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (agent, account, model) DO UPDATE SET
        "window" = excluded."window", what = excluded.what, until_s = excluded.until_s,
        is_timed = excluded.is_timed,
        is_default = excluded.is_default, refused_probes = excluded.refused_probes
"""
DROP_WINDOW = "DELETE FROM usage_limits WHERE agent = ? AND account = ? AND model = ?"
END_WAIT = """
    UPDATE usage_limits SET until_s = ? WHERE agent = ? AND account = ? AND model = ?
"""
WINDOWS = """
    SELECT agent, account, model, "window", what, until_s, is_timed, is_default,
        refused_probes
    FROM usage_limits
"""
