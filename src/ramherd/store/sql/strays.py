"""The SQL of sightings of processes, and of counts of strays."""

SIGHTINGS = """
    SELECT pid, start_ticks, first_s, at_s, ppid, cpu_ticks, active_s, bytes, orphan_s, points
    FROM sightings WHERE place = ?
"""
SET_SIGHTING = """
    INSERT INTO sightings (
        place, pid, start_ticks, first_s, at_s, ppid, cpu_ticks, active_s, bytes, orphan_s, points
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (place, pid, start_ticks) DO UPDATE SET first_s = excluded.first_s,
        at_s = excluded.at_s, ppid = excluded.ppid, cpu_ticks = excluded.cpu_ticks,
        active_s = excluded.active_s, bytes = excluded.bytes, orphan_s = excluded.orphan_s,
        points = excluded.points
"""
DROP_SIGHTINGS = "DELETE FROM sightings WHERE at_s < ?"
DROP_GONE_SIGHTINGS = "DELETE FROM sightings WHERE place = ? AND at_s < ?"
ADD_STRAY_COUNT = """
    INSERT INTO stray_counts (at_s, software, processes, strays, ended) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (at_s, software) DO UPDATE SET processes = excluded.processes,
        strays = excluded.strays, ended = excluded.ended
"""
STRAY_COUNTS = """
    SELECT at_s, software, processes, strays, ended FROM stray_counts
    WHERE at_s >= ? ORDER BY at_s
"""
DROP_STRAY_COUNTS = "DELETE FROM stray_counts WHERE at_s < ?"
