"""Tables of text: which rows and columns are shown, and where."""

import pytest

from ramherd.top.cells import (
    Cell,
    Column,
    SortOrder,
    TableData,
    TableRow,
    choose_rows,
    choose_widths,
    find_column,
    fit_text,
    is_line_wanted,
    lay_out,
    lay_out_header,
    make_cell,
)

COLUMNS = (
    Column("NAME", 10),
    Column("SIZE", 6, is_right=True, rank=3),
    Column("NONE", 6, rank=2),
    Column("WHY", rank=0),
)


def make_table(*rows: tuple[str, int | None, str]) -> TableData:
    return TableData(
        COLUMNS,
        tuple(
            TableRow(name, (make_cell(name), Cell(str(size or ""), value=size), Cell(), Cell(why)))
            for name, size, why in rows
        ),
    )


TABLE = make_table(("beta", 30, "waits"), ("alpha", 4, "runs"), ("gamma", None, "runs on"))


def names(table: TableData) -> list[str]:
    return [row.key for row in table.rows]


def text(table: TableData, width: int) -> list[str]:
    widths = choose_widths(table, width)
    lines = [lay_out(row.cells, table, widths, width) for row in table.rows]
    return ["".join(cell.text for cell in line) for line in lines]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", ["beta", "alpha", "gamma"]),
        ("RUNS", ["alpha", "gamma"]),
        ("!runs", ["beta"]),
        ("!", ["beta", "alpha", "gamma"]),
        ("nothing", []),
    ],
)
def test_a_filter_keeps_rows_with_the_text(wanted: str, found: list[str]) -> None:
    """In any column and any case; with ! the others."""
    assert names(choose_rows(TABLE, wanted, SortOrder())) == found


def test_rows_are_sorted_by_value_and_not_by_text() -> None:
    """4 comes before 30; a row without a value comes last in both directions."""
    assert names(choose_rows(TABLE, "", SortOrder(1))) == ["alpha", "beta", "gamma"]
    assert names(choose_rows(TABLE, "", SortOrder(1, is_reversed=True))) == [
        "beta", "alpha", "gamma",
    ]  # fmt: skip
    assert names(choose_rows(TABLE, "", SortOrder(0))) == ["alpha", "beta", "gamma"]


def test_a_tree_keeps_its_order() -> None:
    """A child stays below its parent."""
    rows = tuple(row._replace(depth=at % 2) for at, row in enumerate(TABLE.rows))

    assert names(choose_rows(TABLE._replace(rows=rows), "", SortOrder(0))) == names(TABLE)


def test_a_column_without_text_is_left_out() -> None:
    """Its room is for the others."""
    assert choose_widths(TABLE, 60)[2] == 0


def test_lines_are_as_wide_as_the_screen() -> None:
    """The column with rank 0 gets the rest."""
    assert {len(line) for line in text(TABLE, 40)} == {40}
    assert text(TABLE, 24)[0] == "beta    30 waits        "


def test_the_column_of_the_highest_rank_goes_first() -> None:
    """Where there is no room for all."""
    long = make_table(("a-long-name", 30, "a sentence that needs the whole width of the screen"))

    assert choose_widths(long, 24)[1] == 0
    assert choose_widths(long, 24)[0] == 10


def test_text_is_cut_with_dots() -> None:
    """So that a user knows that there is more."""
    assert fit_text("migrate-database", 10) == "migrate..."
    assert fit_text("12", 4, is_right=True) == "  12"


def test_wide_characters_count_two_cells() -> None:
    """Columns stay in line."""
    assert fit_text("修复", 6) == "修复  "
    assert fit_text("修复修复", 5) == "修复 "


def test_the_header_marks_the_sorted_column() -> None:
    """With the direction."""
    widths = choose_widths(TABLE, 40)
    header = "".join(
        cell.text for cell in lay_out_header(TABLE, widths, SortOrder(0, is_reversed=True), 40)
    )

    assert header.split()[0] == "NAMEv"


def test_a_click_finds_its_column() -> None:
    """The place in the line is that of the text."""
    widths = choose_widths(TABLE, 40)

    assert find_column(widths, 0, 40) == 0
    assert find_column(widths, widths[0] + 2, 40) == 1
    assert find_column(widths, 39, 40) == 3
    assert find_column(widths, 99, 40) is None


def test_text_from_elsewhere_is_one_printable_line() -> None:
    """A job name cannot move the cursor."""
    assert make_cell("a\x1b[2J\nb\tc").text == "a?[2J b c"


def test_a_line_is_filtered_like_a_row() -> None:
    """For logs."""
    assert is_line_wanted("an Error", "error")
    assert not is_line_wanted("an Error", "!error")
