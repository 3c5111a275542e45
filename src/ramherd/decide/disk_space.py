"""The disk of the state directory: how much logs may grow, and which output is removed when there
is too much. The ballast is a file whose space is released when the disk is full, so that the store
can still be written.
"""

from ramherd.core.model import Reason, Why
from ramherd.core.state_disk import DiskState, LogUsage
from ramherd.core.units import KIB, MIB

# This part (1/8) of `log_total` is kept free for runs that print. Output is removed when less than
# half of that is free.
FREE_SHARE = 8
# The write-ahead log of the store takes 16 MB before a checkpoint.
BALLAST_BYTES = 16 * MIB
# At most this part (1/20, 5 %) of the free space, and no ballast if that is too small to be useful.
BALLAST_SHARE = 20
LEAST_BALLAST_BYTES = 64 * KIB
# The disk is full when less than a quarter of the ballast's size is free, and has room again at
# four times its size.
FULL_SHARE = 4
ROOM_FACTOR = 4


def choose_kept_output(usage: LogUsage, total_bytes: int) -> int | None:
    """How much output of finished runs may stay; None if all of it may."""
    free_bytes = total_bytes - usage.used_bytes
    if not usage.finished_bytes or free_bytes >= total_bytes // (2 * FREE_SHARE):
        return None
    return max(total_bytes - total_bytes // FREE_SHARE - usage.live_bytes, 0)


def choose_log_growth(usage: LogUsage, total_bytes: int, disk: DiskState) -> int:
    """How much the logs of one ramherd's live runs may grow until the next measurement; a negative
    number is how much they have to shrink. Only half of the free space is given: as much may have
    been written since the measurement.
    """
    free_bytes = total_bytes - usage.used_bytes
    if free_bytes < 0:
        return free_bytes // usage.writers
    spare_bytes = max(disk.free_bytes - 2 * full_mark_bytes(disk.held_bytes), 0)
    return min(free_bytes, spare_bytes) // (2 * usage.writers)


def next_ballast_bytes(disk: DiskState) -> int:
    """The size that the ballast should have now."""
    wanted_bytes = min(BALLAST_BYTES, disk.free_bytes // BALLAST_SHARE)
    if disk.is_full:
        has_room = disk.free_bytes >= ROOM_FACTOR * disk.ballast_bytes
        return disk.ballast_bytes if has_room else 0
    if disk.held_bytes and disk.free_bytes < full_mark_bytes(disk.held_bytes):
        return 0
    # Grow the ballast only if the disk has much more room, not after every removed file.
    is_small = wanted_bytes >= 2 * disk.held_bytes
    return wanted_bytes if is_small and wanted_bytes >= LEAST_BALLAST_BYTES else disk.held_bytes


def full_mark_bytes(held_bytes: int) -> int:
    """The disk is full when less than this is free."""
    return max(held_bytes // FULL_SHARE, LEAST_BALLAST_BYTES)


def explain_full_disk(disk: DiskState, path: str) -> Reason:
    return Reason(
        Why.DISK_FULL, path=path, free_bytes=disk.free_bytes,
        need_bytes=ROOM_FACTOR * disk.ballast_bytes,
    )  # fmt: skip


def explain_ballast(disk: DiskState, path: str) -> Reason:
    """`disk` is the state before the change."""
    if disk.held_bytes:
        return Reason(
            Why.BALLAST_RELEASED, path=path, free_bytes=disk.free_bytes,
            released_bytes=disk.held_bytes,
        )  # fmt: skip
    return Reason(
        Why.BALLAST_RESTORED, path=path, free_bytes=disk.free_bytes, held_bytes=disk.ballast_bytes
    )


def explain_removed_output(runs: int, freed_bytes: int, total_bytes: int) -> Reason:
    return Reason(Why.LOG_TOTAL, runs=runs, freed_bytes=freed_bytes, limit_bytes=total_bytes)


def explain_smaller_logs(usage: LogUsage, total_bytes: int) -> Reason:
    return Reason(Why.LOGS_SMALLER, used_bytes=usage.used_bytes, limit_bytes=total_bytes)
