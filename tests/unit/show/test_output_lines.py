"""What jobs print, with tags and in whole lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.show.output_lines import LINE_BYTES, OutputLines, make_tag

PIECES = st.lists(st.binary(max_size=8).map(lambda piece: piece.replace(b"\x00", b"\n")))


def pass_through(pieces: list[bytes], lines: OutputLines) -> bytes:
    return b"".join([*map(lines.feed, pieces), lines.close()])


@given(PIECES)
def test_without_a_tag_nothing_is_changed(pieces: list[bytes]) -> None:
    """Not even the end of the last line."""
    assert pass_through(pieces, OutputLines()) == b"".join(pieces)


@pytest.mark.parametrize("is_whole", [False, True])
@given(pieces=PIECES)
def test_each_line_has_its_tag(is_whole: bool, pieces: list[bytes]) -> None:
    """However the bytes were cut, and the last line gets its end."""
    data = b"".join(pieces)
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    expected = b"".join(b"t:" + line + b"\n" for line in lines)
    assert pass_through(pieces, OutputLines(b"t:", is_whole=is_whole)) == expected


def test_others_may_print_between_whole_lines_only() -> None:
    """The beginning of a line waits; one without end is broken."""
    lines = OutputLines(is_whole=True)
    assert [lines.feed(b"one"), lines.feed(b" line\ntwo"), lines.close()] == [
        b"", b"one line\n", b"two\n",
    ]  # fmt: skip
    assert lines.feed(b"x" * (LINE_BYTES + 1)) == b"x" * (LINE_BYTES + 1) + b"\n"


@pytest.mark.parametrize(
    ("name", "is_terminal", "tag"),
    [
        ("lint", False, b"lint\t"),
        ("lint", True, b"lint   | "),
        ("\x1b[31m", False, b"?[31m\t"),
        ("n" * 30, True, b"n" * 24 + b" | "),
    ],
)
def test_tags(name: str, is_terminal: bool, tag: bytes) -> None:
    """A column on a terminal, a tab in a pipe, and no control character."""
    assert make_tag(name, 6, is_terminal=is_terminal) == tag
