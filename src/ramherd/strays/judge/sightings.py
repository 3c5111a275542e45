"""What one look writes down for the next: since when, how much, how busy."""

from ramherd.core.sightings import Sighting
from ramherd.decide.governor.leaks import Watch, next_watch
from ramherd.strays.nouns import ProcessScene, PsRow

# An idle Node server was seen to use 0.1 % of a CPU for its timers.
BUSY_SHARE = 0.005
POINTS_EVERY_S = 60.0


def next_sighting(row: PsRow, scene: ProcessScene) -> Sighting:
    process, now = row.process, scene.at_s
    seen = scene.sightings.get(process.id)
    points = next_points(seen.points if seen is not None else (), now, row.memory_bytes)
    if seen is None:
        return Sighting(
            now, now, process.ppid, process.cpu_ticks, now, row.memory_bytes, row.orphan_s, points
        )  # fmt: skip
    busy = is_busy(seen, process.cpu_ticks, now, scene.ticks_per_s)
    return Sighting(
        seen.first_s,
        now,
        # The parent it was first seen with: another one by now means that it was inherited.
        seen.ppid,
        process.cpu_ticks,
        now if busy else seen.active_s,
        row.memory_bytes,
        row.orphan_s,
        points,
    )


def is_busy(seen: Sighting, cpu_ticks: int, now_s: float, ticks_per_s: int) -> bool:
    used_s = (cpu_ticks - seen.cpu_ticks) / ticks_per_s
    return used_s > max(BUSY_SHARE * (now_s - seen.at_s), 1 / ticks_per_s)


def next_points(
    points: tuple[tuple[float, int], ...], at_s: float, memory_bytes: int
) -> tuple[tuple[float, int], ...]:
    return next_watch(Watch(points, spacing(points)), at_s, memory_bytes).points


def spacing(points: tuple[tuple[float, int], ...]) -> float:
    """What thinning left between two points; it grows as the history does."""
    if len(points) < 2:
        return POINTS_EVERY_S
    return max(POINTS_EVERY_S, (points[-1][0] - points[0][0]) / len(points))
