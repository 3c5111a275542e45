"""The SQL of the census, and of the alerts of `ramherd watch`."""

COLUMNS = """
    pid, start_ticks, software, kind, session, cwd, resume, run, verdict, started_s, seen_s,
    ended_s, bytes, highest_bytes, highest_s, trend_bytes
"""
# The history of a live process is in its sighting; when it has ended, in the census.
ROWS = """
    SELECT census.pid, census.start_ticks, software, kind, session, cwd, resume, run, verdict,
        started_s, seen_s, ended_s, census.bytes, highest_bytes, highest_s, trend_bytes,
        coalesce(sightings.points, census.points)
    FROM census LEFT JOIN sightings ON sightings.place = census.place
        AND sightings.pid = census.pid AND sightings.start_ticks = census.start_ticks
    WHERE seen_s >= ? ORDER BY seen_s DESC, highest_bytes DESC
"""
LIVE_ROWS = f"SELECT {COLUMNS}, points FROM census WHERE place = ? AND ended_s IS NULL"
SET_ROW = f"""
    INSERT INTO census (place, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (place, pid, start_ticks) DO UPDATE SET software = excluded.software,
        kind = excluded.kind, session = excluded.session, cwd = excluded.cwd,
        resume = excluded.resume, run = excluded.run, verdict = excluded.verdict,
        seen_s = excluded.seen_s, ended_s = excluded.ended_s, bytes = excluded.bytes,
        highest_bytes = excluded.highest_bytes, highest_s = excluded.highest_s,
        trend_bytes = excluded.trend_bytes
"""
END_ROW = """
    UPDATE census SET ended_s = ?, points = ? WHERE place = ? AND pid = ? AND start_ticks = ?
"""
# Processes of an earlier boot, or of a container that is gone.
END_ELSEWHERE = "UPDATE census SET ended_s = seen_s WHERE ended_s IS NULL AND place <> ?"
DROP_OLD_ROWS = "DELETE FROM census WHERE seen_s < ?"
# The newest of each sort: tools that come and go must not push out agents and servers.
DROP_MANY_ROWS = """
    DELETE FROM census WHERE rowid IN (
        SELECT rowid FROM census WHERE (kind IN ('agent', 'mcp')) = ?
        ORDER BY seen_s DESC LIMIT -1 OFFSET ?
    )
"""
TOTALS = """
    SELECT at_s, agents, servers, tools, strays, bytes, stray_bytes, used_percent
    FROM census_totals WHERE at_s >= ? ORDER BY at_s
"""
NEWEST_TOTAL = """
    SELECT at_s, agents, servers, tools, strays, bytes, stray_bytes, used_percent
    FROM census_totals ORDER BY at_s DESC LIMIT 1
"""
ADD_TOTAL = "INSERT OR REPLACE INTO census_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
DROP_OLD_TOTALS = "DELETE FROM census_totals WHERE at_s < ?"
# A clock that was set back must not stop the totals.
DROP_LATER_TOTALS = "DELETE FROM census_totals WHERE at_s > ?"
ALERTS = "SELECT key, at_s FROM watch_alerts"
SET_ALERT = """
    INSERT INTO watch_alerts (key, at_s) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET at_s = excluded.at_s
"""
DROP_ALERT = "DELETE FROM watch_alerts WHERE key = ?"
