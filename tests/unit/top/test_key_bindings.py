"""The table of keys."""

from ramherd.top.app import TopApp
from ramherd.top.key_bindings import KEYS, choose_keys, render_help
from ramherd.top.panels import BY_ID, PANELS


def test_no_key_has_two_meanings() -> None:
    """Nor one of the numbers of panels."""
    keys = [key for use in KEYS for key in use.keys.split(",")]
    keys += [str(number) for number, _panel in enumerate(PANELS, 1)]

    assert len(set(keys)) == len(keys)


def test_every_key_has_an_action() -> None:
    """By its name in the application."""
    for use in KEYS:
        assert hasattr(TopApp, f"action_{use.action.partition('(')[0]}"), use


def test_keys_name_panels_that_exist() -> None:
    """Else they would never be shown."""
    assert {panel for use in KEYS for panel in use.panels} <= set(BY_ID)


def test_the_last_keys_are_help_and_quit() -> None:
    """They are shown in every panel, however narrow."""
    for panel in BY_ID:
        assert [key.label for key in choose_keys(panel)][-2:] == ["help", "quit"]


def test_the_help_has_every_key() -> None:
    """And every panel, within 80 columns."""
    lines = render_help([(number, panel.title) for number, panel in enumerate(PANELS, 1)])
    text = "\n".join(lines)

    assert all(use.what in text for use in KEYS)
    assert all(panel.title in text for panel in PANELS)
    assert max(map(len, lines)) <= 76
