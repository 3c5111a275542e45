"""Variables and arguments as bytes: what comes back is what was written."""

from pathlib import Path

import pytest

from ramherd.system.environ import (
    decode_bytes,
    encode,
    merge_layers,
    parse_environ,
    parse_words,
    read_all,
    read_part,
    render_environ,
    render_words,
)

RAW = decode_bytes(b"\xff\xc3")


def test_any_bytes_come_back() -> None:
    """Also those that are no UTF-8, empty values and empty arguments."""
    variables = {"A": RAW, RAW: "=", "EMPTY": ""}

    assert parse_environ(render_environ(variables)) == {
        encode(name): encode(text) for name, text in variables.items()
    }
    assert parse_words(render_words(["", RAW, "a\nb", ""])) == [b"", b"\xff\xc3", b"a\nb", b""]


def test_layers_are_merged_in_order(tmp_path: Path) -> None:
    """A part of a file is one, and None removes a variable."""
    first, second = render_environ({"A": "1", "B": "1"}), render_environ({"B": "2"})
    (tmp_path / "env").write_bytes(first + second)
    path, end = str(tmp_path / "env"), len(first) + len(second)

    merged = merge_layers([(path, 0, len(first)), {"A": None, "C": "3"}, [path, len(first), end]])

    assert merged == {b"B": b"2", b"C": b"3"}


def test_a_file_that_is_too_short_is_an_error_that_names_it(tmp_path: Path) -> None:
    """Half an environment is none."""
    (tmp_path / "env").write_bytes(b"A=1\0")

    assert read_all(str(tmp_path / "env")) == b"A=1\0"
    with pytest.raises(OSError, match="has less than 9 bytes") as caught:
        read_part(str(tmp_path / "env"), 0, 9)
    assert caught.value.filename == str(tmp_path / "env")
