"""What the kernel takes when a program is started."""

import pytest

from ramherd.core.exec_limits import (
    LEAST_BYTES,
    LONGEST_BYTES,
    MOST_BYTES,
    explain_length,
    explain_sum,
    explain_variables,
    limit_of_stack,
)


@pytest.mark.parametrize(
    ("stack", "limit"),
    [(8 << 20, 2 << 20), (-1, MOST_BYTES), (1 << 40, MOST_BYTES), (1 << 16, LEAST_BYTES)],
)
def test_all_together_may_take_a_quarter_of_the_stack(stack: int, limit: int) -> None:
    """Within bounds; a stack without a limit is the largest."""
    assert limit_of_stack(stack) == limit


def test_the_argument_that_is_too_long_is_named() -> None:
    """By its number, with its size and the limit; the longest that is taken is not."""
    assert explain_length([b"cat", b"x" * LONGEST_BYTES]) == ""
    assert explain_length([b"cat", b"", b"x" * (LONGEST_BYTES + 1)]) == (
        "argument 2 has 131,072 bytes, the kernel takes 131,071 at most"
    )


def test_the_variable_that_is_too_long_is_named_without_its_value() -> None:
    """Name, equals sign and value count."""
    assert explain_variables({b"KEY": b"x" * (LONGEST_BYTES - 4)}) == ""
    assert explain_variables({b"A": b"", b"\xffKEY": b"secret" * 30_000}) == (
        "variable \\xffKEY has 180,005 bytes, the kernel takes 131,071 at most"
    )


def test_a_sum_names_the_largest_variable() -> None:
    """Each string costs a NUL and a pointer as well."""
    assert explain_sum([b"cat", b"x"], {b"A": b"1", b"LONG": b"12345"}, 10) == (
        "arguments (22 bytes) and environment (31 bytes) have 53 together, the kernel takes 10 at "
        "most; the largest variable is LONG with 19"
    )
    assert "the largest variable is  with 0" in explain_sum([b"cat"], {}, 10)
