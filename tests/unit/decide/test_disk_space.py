"""The disk of the state directory: how much logs may grow, and when the ballast is released."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.reasons import Reason, Why
from ramherd.core.state_disk import DiskState, LogUsage
from ramherd.core.units import GIB, KIB, MIB
from ramherd.decide.disk_space import (
    BALLAST_BYTES,
    LEAST_BALLAST_BYTES,
    choose_kept_output,
    choose_log_growth,
    explain_ballast,
    explain_full_disk,
    explain_removed_output,
    explain_smaller_logs,
    full_mark_bytes,
    next_ballast_bytes,
)
from support.reached import Reached

TOTAL = 160 * MIB
LARGE_DISK = DiskState(100 * GIB, BALLAST_BYTES, BALLAST_BYTES)


@pytest.mark.parametrize(
    ("finished", "live", "kept"),
    [
        (100, 50, None),
        # A sixteenth is free, and not a byte less.
        (150, 0, None),
        (151, 0, 140),
        (100, 60, 80),
        (10, 200, 0),
        # There is no output to remove.
        (0, 200, None),
    ],
)
def test_finished_output_makes_room_in_time(finished: int, live: int, kept: int | None) -> None:
    """Two marks: an eighth is made free when less than a sixteenth is free."""
    found = choose_kept_output(LogUsage(finished * MIB, live * MIB), TOTAL)
    assert found == (None if kept is None else kept * MIB)


def test_a_cap_smaller_than_the_shares_keeps_nothing_free() -> None:
    """In whole bytes, the shares of 7 bytes are zero."""
    assert choose_kept_output(LogUsage(7, 0), 7) is None
    assert choose_kept_output(LogUsage(8, 0), 7) == 7


@pytest.mark.parametrize(
    ("finished", "live", "writers", "growth"),
    [
        (0, 0, 1, 80), (60, 20, 1, 40), (60, 20, 2, 20), (160, 0, 1, 0),
        (0, 164, 1, -4), (0, 164, 2, -2), (100, 64, 4, -1),
    ],
)  # fmt: skip
def test_logs_grow_by_half_of_what_is_free(
    finished: int, live: int, writers: int, growth: int
) -> None:
    """All writers share it; above the cap each writer shrinks by its part."""
    usage = LogUsage(finished * MIB, live * MIB, writers)
    assert choose_log_growth(usage, TOTAL, LARGE_DISK) == growth * MIB


def test_the_odd_byte_of_a_share_is_nobodys() -> None:
    """Whole bytes, rounded down: a log grows by one byte less, or shrinks by one more."""
    assert choose_log_growth(LogUsage(0, 3, 2), 10, LARGE_DISK) == 1
    assert choose_log_growth(LogUsage(0, 13, 2), 10, LARGE_DISK) == -2


def test_logs_leave_the_last_bytes_to_the_store() -> None:
    """They leave twice the mark at which the ballast is released; a full disk shrinks no log."""
    usage = LogUsage(0, 0, 2)
    held = DiskState(10 * MIB, BALLAST_BYTES, BALLAST_BYTES)
    assert choose_log_growth(usage, TOTAL, held) == MIB // 2
    assert choose_log_growth(usage, TOTAL, DiskState(8 * MIB, 0, BALLAST_BYTES)) == 0
    assert choose_log_growth(usage, TOTAL, DiskState(0)) == 0
    assert choose_log_growth(usage, TOTAL, DiskState(128 * KIB + 8)) == 2


@pytest.mark.parametrize(
    ("free", "size", "held", "wanted"),
    [
        # The first ballast: 5 % of the free space, at most 16 MiB, or none at all.
        (GIB, 0, 0, BALLAST_BYTES),
        (320 * MIB, 0, 0, BALLAST_BYTES),
        (40 * MIB, 0, 0, 2 * MIB),
        (40 * MIB + 19, 0, 0, 2 * MIB),
        (20 * 64 * KIB, 0, 0, 64 * KIB),
        (20 * 64 * KIB - 1, 0, 0, 0),
        # The ballast stays until the disk is full.
        (4 * MIB, BALLAST_BYTES, BALLAST_BYTES, BALLAST_BYTES),
        (4 * MIB - 1, BALLAST_BYTES, BALLAST_BYTES, 0),
        (100 * KIB, 400 * KIB + 3, 400 * KIB + 3, 400 * KIB + 3),
        (64 * KIB, 100 * KIB, 100 * KIB, 100 * KIB),
        (64 * KIB - 1, 100 * KIB, 100 * KIB, 0),
        # Then it is released until there is room with a margin.
        (64 * MIB - 1, BALLAST_BYTES, 0, 0),
        (64 * MIB, BALLAST_BYTES, 0, BALLAST_BYTES),
        # The disk has become larger.
        (80 * MIB, 2 * MIB, 2 * MIB, 4 * MIB),
        (79 * MIB, 2 * MIB, 2 * MIB, 2 * MIB),
    ],
)
def test_the_ballast_has_two_marks(free: int, size: int, held: int, wanted: int) -> None:
    """The ballast is not restored from the room that its release made."""
    assert next_ballast_bytes(DiskState(free, size, held)) == wanted


@given(
    disk=st.integers(MIB, 400 * MIB),
    taken=st.lists(st.sampled_from((0.0, 0.5, 0.9, 0.99, 1.0)), min_size=2, max_size=8),
)
def test_the_ballast_never_flaps(reached: Reached, disk: int, taken: list[float]) -> None:
    """Whatever other programs write: a second check of the same disk changes nothing more."""
    size = held = 0
    is_released = False
    for share in taken:
        free = max(int(disk * (1 - share)) - held, 0)
        before = held
        held = next_ballast_bytes(DiskState(free, size, held))
        size = max(size, held)
        is_released = is_released or held < before
        free += before - held
        again = next_ballast_bytes(DiskState(free, size, held))
        assert again >= held or (again == 0 and free < full_mark_bytes(held))
        assert held <= BALLAST_BYTES
        assert held == 0 or held >= LEAST_BALLAST_BYTES
    reached(is_released, "a ballast that was released")


def test_a_disk_is_full_from_the_release_until_there_is_room() -> None:
    """The state is on disk, so every ramherd can read it."""
    assert not DiskState(0).is_full
    assert not DiskState(0, MIB, MIB).is_full
    assert DiskState(0, MIB, 0).is_full


def test_what_users_are_told() -> None:
    """The reasons have the compared numbers and the path."""
    full = DiskState(5, MIB, 0)
    assert explain_full_disk(full, "/s") == Reason(
        Why.DISK_FULL, path="/s", free_bytes=5, need_bytes=4 * MIB
    )
    assert explain_ballast(DiskState(5, MIB, MIB), "/s") == Reason(
        Why.BALLAST_RELEASED, path="/s", free_bytes=5, released_bytes=MIB
    )
    assert explain_ballast(full, "/s") == Reason(
        Why.BALLAST_RESTORED, path="/s", free_bytes=5, held_bytes=MIB
    )
    assert explain_removed_output(2, 3, 4) == Reason(
        Why.LOG_TOTAL, runs=2, freed_bytes=3, limit_bytes=4
    )
    assert explain_smaller_logs(LogUsage(1, 2), 4) == Reason(
        Why.LOGS_SMALLER, used_bytes=3, limit_bytes=4
    )
