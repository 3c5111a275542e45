"""Why a program failed, from what it printed on standard error."""

from pathlib import Path

import pytest

from ramherd.measure.last_error import LINE_LENGTH, TAIL_BYTES, parse_last_error, read_last_error

NODE = """\
/app/index.js:3
    throw new Error("no key");
    ^

Error: no key
    at run (/app/index.js:3:11)
    at Object.<anonymous> (/app/index.js:9:1)

Node.js v20.19.2
"""
GEMINI = """\
Ripgrep is not available. Falling back to GrepTool.
Error when talking to Gemini API _ApiError: {"error":{"code":400}}
    at throwErrorIfNotOK (file:///app/chunk.js:267833:24)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5) {
  status: 400
}
"""
PYTHON = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
ValueError: no key
"""


@pytest.mark.parametrize(
    ("printed", "last"),
    [
        ("", ""),
        ("\n \n--- \n", ""),
        ("warning: old\nAuthentication required\n\n", "Authentication required"),
        ("\x1b[93m\x1b[1m! \x1b[0mpermission requested: bash\n", "! permission requested: bash"),
        ("10 %\rfatal: not found\r", "fatal: not found"),
        ("   all is   indented\n", "all is indented"),
        (NODE, "Error: no key"),
        (GEMINI, 'Error when talking to Gemini API _ApiError: {"error":{"code":400}}'),
        (PYTHON, "ValueError: no key"),
        ("x" * 1000, "x" * (LINE_LENGTH - 3) + "..."),
    ],
)
def test_the_last_line_that_says_something(printed: str, last: str) -> None:
    """Not the end of a stack, nor a bracket; without colours, in one line of bounded length."""
    assert parse_last_error(printed) == last


def test_only_the_end_is_read(tmp_path: Path) -> None:
    """However much there is; a run without output has none."""
    (tmp_path / "err").write_bytes(b"first\n" + b"." * 2 * TAIL_BYTES + b"\nlast \xff words\n")

    assert read_last_error(tmp_path) == "last \ufffd words"
    assert read_last_error(tmp_path / "gone") == ""
