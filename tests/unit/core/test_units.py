"""Sizes and durations: text to numbers and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.errors import UsageError
from ramherd.core.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    format_duration,
    format_size,
    parse_duration,
    parse_memory,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("7b", 7), (" 7 B ", 7),
        ("1k", KIB), ("1KiB", KIB), ("1kb", 1000),
        ("512M", 512 * MIB), ("512MiB", 512 * MIB), ("512 MB", 512 * 10**6),
        ("2g", 2 * GIB), ("2GiB", 2 * GIB), ("1.5 GB", 1_500_000_000),
        ("1T", TIB), ("1tib", TIB), ("1tb", 10**12), ("0.5KiB", 512), ("007B", 7),
    ],
)  # fmt: skip
def test_a_size_is_binary_unless_it_says_b_without_i(text: str, size: int) -> None:
    """GiB = 2^30, GB = 10^9, a lone letter is binary."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", " ", "GiB", "two", "-1", "1e9", "1,5G", "1 000", "0x10", "12XB", "1GiBs", "1.GiB", ".5G",
     "0", "0GiB", "0.1", "\u0663GiB", "\uff15MiB", "inf", "nan", "1GiB 2", True, False, 1.5, None,
     [], {}, 0, -5],
)  # fmt: skip
def test_what_is_no_size_is_a_usage_error(text: object) -> None:
    """The error names what was given, in one line, and shows how to write it."""
    with pytest.raises(UsageError) as caught:
        parse_size(text)

    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12", "12GiB"), ("31", "31GiB"), ("32", "32MiB"), ("512", "512MiB"), ("1.5", "1.5GiB"),
        ("1048575", "1048575MiB"), ("1048576", "1MiB"), ("536870912", "512MiB"),
        ("4294967296", "4GiB"), ("4000000000", "3815MiB"),
    ],
)  # fmt: skip
def test_a_number_without_a_unit_is_no_size(text: str, meant: str) -> None:
    """The hint names the size that was meant, and that parses."""
    with pytest.raises(UsageError, match=f"size '{text}' has no unit") as caught:
        parse_size(text)

    assert caught.value.hint == f"{text} bytes? say {meant}"
    assert parse_size(meant) >= MIB


def test_memory_of_a_program_is_a_number_of_bytes() -> None:
    """The API and Python have integers; below 1 MiB they were meant as something else."""
    assert parse_memory(MIB) == MIB
    with pytest.raises(UsageError, match="size 512 is below 1 MiB") as caught:
        parse_memory(512)
    assert caught.value.hint == "512 bytes? say 512MiB"


@pytest.mark.parametrize("value", [0, -5, 1 << 63, True, 1.5, None, "1023KiB", "512"])
def test_what_is_no_memory_is_a_usage_error(value: object) -> None:
    """One line with a hint, whatever JSON has."""
    with pytest.raises(UsageError) as caught:
        parse_memory(value)

    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_a_size_beyond_all_floats_is_a_usage_error() -> None:
    """A job file with too many digits is wrong, not a bug of ours."""
    with pytest.raises(UsageError):
        parse_size("9" * 400)


def test_an_integer_beyond_all_texts_is_a_usage_error() -> None:
    """TOML takes hexadecimal integers of any length."""
    with pytest.raises(UsageError):
        parse_memory(16**5000)


def test_a_duration_beyond_all_floats_is_a_usage_error() -> None:
    """What is stored is JSON, which has no infinity."""
    with pytest.raises(UsageError):
        parse_duration("9" * 400)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("90", 90), (90, 90), (1.5, 1.5), ("1.5h", 5400), ("5m", 300), ("5 min", 300),
        ("250ms", 0.25), ("1d", 86400), ("2H", 7200),
    ],
)  # fmt: skip
def test_a_duration_is_in_seconds_unless_it_says_so(text: str | float, seconds: float) -> None:
    """ms, s, m, min, h, d; a plain number is seconds."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "soon", "-1s", "0", "0s", 0, -1.0, "5 parsecs", "1h30m", "\u0663s", True,
             None, [], float("inf"), float("nan")],
)  # fmt: skip
def test_what_is_no_duration_is_a_usage_error(text: object) -> None:
    """The error names what was given, in one line, and shows how to write it."""
    with pytest.raises(UsageError) as caught:
        parse_duration(text)  # type: ignore[arg-type]

    assert "\n" not in str(caught.value)
    assert caught.value.hint


@given(st.integers(1, 1 << 53))
def test_a_number_of_bytes_is_exact(size: int) -> None:
    """No rounding on the way in, as text or as a number."""
    assert parse_size(f"{size}B") == parse_size(f"{size} B") == size


@given(st.integers(1, 1 << 32), st.sampled_from([("KiB", KIB), ("MiB", MIB), ("GiB", GIB)]))
def test_a_number_of_units_is_exact(number: int, unit: tuple[str, int]) -> None:
    """A limit is what was written, to the byte."""
    assert parse_size(f"{number}{unit[0]}") == number * unit[1]


@given(st.integers(1, 1 << 50))
def test_a_size_that_was_shown_can_be_given_back(size: int) -> None:
    """What a screen says parses, and is right to three figures."""
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.006)


@given(st.integers(0, 1 << 49))
def test_a_size_has_three_figures_at_most(size: int) -> None:
    """Columns of sizes stay narrow."""
    number = format_size(size).split()[0]

    assert len(number.replace(".", "").lstrip("0")) <= 3


def test_a_size_never_reads_as_a_thousand_of_a_unit() -> None:
    """From 1000 of a unit the next one is used, also after rounding."""
    assert format_size(int(999.7 * MIB)) == "0.98 GiB"


def test_terabytes_are_shown_as_such() -> None:
    """Three significant figures at most."""
    assert format_size(2 * TIB) == "2 TiB"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (512 * MIB, "512 MiB"),
        (1.5 * GIB, "1.5 GiB"), (1000 * MIB, "0.98 GiB"), (-3 * MIB, "-3 MiB"),
        (12.34 * GIB, "12.3 GiB"), (100 * GIB, "100 GiB"),
    ],
)  # fmt: skip
def test_sizes_as_shown(size: float, text: str) -> None:
    """No zeros that say nothing, and a sign for what is missing."""
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0s"), (0, "0.0s"), (0.44, "0.4s"), (42.4, "42s"), (59.6, "1m00s"), (187, "3m07s"),
        (3599.6, "1h00m"), (7500, "2h05m"), (90000, "25h00m"),
    ],
)  # fmt: skip
def test_durations_as_shown(seconds: float, text: str) -> None:
    """Never sixty seconds or sixty minutes."""
    assert format_duration(seconds) == text


@given(st.floats(0.1, 59.4))
def test_a_duration_below_a_minute_can_be_given_back(seconds: float) -> None:
    """What a screen says parses, and is right to the shown figure."""
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=0.51)
