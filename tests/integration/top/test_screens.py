"""Every panel and page on fixed values, compared with its picture.

After a wanted change run this file with `--snapshot-update`, and look at the pictures.
"""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from integration.top.conftest import SETTINGS
from ramherd.top.app import TopApp
from ramherd.top.panels import PANELS
from ramherd.top.reading import Reading, ServiceReading
from support.docs_top import settle_screen
from support.top_readings import FixedSource, make_empty_reading, make_reading

NARROW, WIDE = (80, 24), (200, 60)
LOST = "the service has ended or was killed: ramherd up starts it again"
Compare = Callable[..., bool]


def compare(
    snap_compare: Compare, size: tuple[int, int], *keys: str, reading: Reading | None = None
) -> bool:
    async def settle(pilot: "Pilot[Any]") -> None:
        await settle_screen(pilot)
        await pilot.press(*keys)
        await settle_screen(pilot)

    app = TopApp(FixedSource(reading), SETTINGS)
    return snap_compare(app, terminal_size=size, run_before=settle)


@pytest.mark.parametrize("panel", [panel.id for panel in PANELS])
def test_each_panel_on_a_small_screen(snap_compare: Compare, panel: str) -> None:
    """80 x 24, as over ssh."""
    number = 1 + [one.id for one in PANELS].index(panel)

    assert compare(snap_compare, NARROW, str(number))


def test_all_panels_on_a_large_screen(snap_compare: Compare) -> None:
    """200 x 60."""
    assert compare(snap_compare, WIDE)


@pytest.mark.parametrize("panel", ["runs", "strays"])
def test_one_panel_on_a_large_screen(snap_compare: Compare, panel: str) -> None:
    """Zoomed, as a tree."""
    number = 1 + [one.id for one in PANELS].index(panel)

    assert compare(snap_compare, WIDE, str(number), "z", "t")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["small", "large"])
def test_a_machine_without_jobs(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Each panel has a sentence, and nothing looks broken."""
    assert compare(snap_compare, size, reading=make_empty_reading())


def test_a_lost_service(snap_compare: Compare) -> None:
    """In red, first of all."""
    reading = make_reading(service=ServiceReading(problem=LOST))

    assert compare(snap_compare, NARROW, reading=reading)


def test_the_question_before_a_reap(snap_compare: Compare) -> None:
    """With the evidence."""
    assert compare(snap_compare, NARROW, "8", "down", "x")


def test_the_help(snap_compare: Compare) -> None:
    """A page of text."""
    assert compare(snap_compare, NARROW, "question_mark")


def test_a_filter(snap_compare: Compare) -> None:
    """While it is typed."""
    assert compare(snap_compare, NARROW, "slash", *"test")


def test_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: bold, dim and reverse remain."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert compare(snap_compare, NARROW)
