"""The view of a herd that the service runs."""

import time
from typing import Any

import pytest

from ramherd.cli.follow import find_beginning, make_view
from ramherd.client.shapes import HerdInfo
from support.make import HERD


def herd(**counts: int) -> HerdInfo:
    return {
        "herd": HERD, "created_s": time.time() - 1000.0, "ended_s": None, "service": True,
        "owner_lost": False, "counts": counts,
    }  # fmt: skip


def test_the_time_of_a_resumed_herd_counts_from_then() -> None:
    """Not the time in which it was interrupted, nor the jobs that ended before."""
    new, resumed = (
        find_beginning(herd(done=3, failed=1, queued=6), is_resumed=is_resumed)
        for is_resumed in (False, True)
    )
    snapshot: dict[str, Any] = {
        "waits_for": None, "runs": [], "used_bytes": 0, "budget_bytes": 1, "available_bytes": 1,
        "level": "calm",
    }  # fmt: skip

    view = make_view(herd(done=5, failed=1, queued=4), snapshot, {}, new)
    assert (view.wall_s, view.eta_s) == pytest.approx((1000.0, 1000.0 / 6 * 4), abs=30.0)
    view = make_view(herd(done=5, failed=1, queued=4), snapshot, {}, resumed)
    assert view.wall_s < 30.0
    assert view.eta_s == view.wall_s / 2 * 4
