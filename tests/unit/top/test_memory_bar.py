"""The memory of the machine as one bar."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.units import GIB
from ramherd.top.memory_bar import MARK, PARTS, render_bar, render_legend, sizes, split_cells
from ramherd.top.reading import MemoryParts, split_memory

SIZES = st.integers(0, 2**42)


def split(
    total: int, available: int, idle: int = 0, used: int = 0, granted: int = 0
) -> MemoryParts:
    return split_memory(
        total, available, idle, used_bytes=used, granted_bytes=granted, budget_share=0.8,
        budget_bytes=0,
    )  # fmt: skip


def text(memory: MemoryParts, width: int) -> str:
    return "".join(cell.text for cell in render_bar(memory, width))


def test_the_parts_are_told_apart_by_sign() -> None:
    """10 GiB: 2 of others, 3 used, 1 granted beyond, 1 reclaimable, 3 free; the mark at 8."""
    memory = split(10 * GIB, 5 * GIB, idle=3 * GIB, used=3 * GIB, granted=4 * GIB)

    assert text(memory, 20) == "▒▒▒▒██████▓▓░░··┃···"


@given(st.tuples(*[SIZES] * 5), st.integers(1, 300))
def test_the_sum_is_always_the_total(measured: tuple[int, ...], width: int) -> None:
    """Whatever was measured at different moments, no part is negative and the bar is full."""
    total = measured[0]
    memory = split(*measured)

    assert sum(sizes(memory)) == total
    assert min(sizes(memory)) >= 0
    if total:
        assert sum(cells for _part, cells in split_cells(memory, width)) == width
        assert all(cells >= 0 for _part, cells in split_cells(memory, width))
        assert len(text(memory, width)) == width
        assert text(memory, width).count(MARK) == 1


def test_a_small_part_is_seen() -> None:
    """One run of 10 MiB on a large machine is not nothing."""
    assert "█" in text(split(64 * GIB, 60 * GIB, used=10 << 20), 80)


def test_the_legend_leaves_the_mark_out_where_it_is_narrow() -> None:
    """80 columns are enough for all parts."""
    memory = split(24 * GIB, 9 * GIB, idle=3 * GIB, used=9 * GIB, granted=11 * GIB)

    narrow = "".join(cell.text for cell in render_legend(memory, 80))
    wide = "".join(cell.text for cell in render_legend(memory, 120))

    assert len(narrow) <= 80
    assert all(part.name in narrow for part in PARTS)
    assert wide.endswith("80 % of 24 GiB")


def test_a_machine_that_was_not_read_has_no_bar() -> None:
    """Nothing is divided by nothing."""
    assert render_bar(split(0, 0), 40) == []
