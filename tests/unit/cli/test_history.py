"""`ramherd history`: the table fits the terminal."""

import pytest

from ramherd.cli.history import HEAD, print_table


def test_long_names_are_cut_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers behind them stay whole, and in their columns."""
    numbers = ("12", "215 MiB", "40 MiB", "1.2 GiB", "12m30s", "100%")
    print_table(
        [HEAD, (f"claude / {'project' * 9} / -", *numbers), ("codex / - / -", *numbers)], 80
    )
    lines = capsys.readouterr().out.splitlines()

    assert {len(line) for line in lines} == {80}
    assert all(line.endswith(" 100%") for line in lines[1:])
    assert "proj...  " in lines[1]


def test_a_wide_terminal_shows_names_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """The table is only as wide as it needs to be."""
    print_table([HEAD, ("claude / a / -", "1", "1 MiB", "1 MiB", "1 MiB", "1s", "-")], 200)

    assert capsys.readouterr().out.splitlines()[1].startswith("claude / a / -  ")
