"""The output of jobs as lines on our own output: with a tag before each line, and only whole lines
where several jobs take turns.
"""

import json
from collections.abc import Mapping

from ramherd.show.event_lines import printable

# A longer line is broken where several jobs take turns.
LINE_BYTES = 256 << 10
WIDEST_NAME = 24


def make_tag(name: str, widest: int, *, is_terminal: bool) -> bytes:
    """In columns on a terminal; elsewhere the name and a tab, as in GNU parallel."""
    shown = printable(name)
    if not is_terminal:
        return f"{shown}\t".encode()
    return f"{shown[:WIDEST_NAME]:<{min(widest, WIDEST_NAME)}} | ".encode()


class OutputLines:
    """One stream that arrives in pieces. With `is_whole`, the beginning of a line waits for its
    end, because others may print in between.
    """

    def __init__(self, tag: bytes = b"", *, is_whole: bool = False) -> None:
        self._tag = tag
        self._is_whole = is_whole
        self._held = b""
        self._is_at_start = True

    def feed(self, data: bytes) -> bytes:
        if self._is_whole:
            data = self._held + data
            end = data.rfind(b"\n") + 1
            if len(data) - end > LINE_BYTES:
                data, end = data + b"\n", len(data) + 1
            data, self._held = data[:end], data[end:]
        return self._tagged(data)

    def close(self) -> bytes:
        """The waiting text, with its missing newline if lines have tags or are whole."""
        rest, self._held = self._tagged(self._held), b""
        if self._is_at_start or not (self._tag or self._is_whole):
            return rest
        self._is_at_start = True
        return rest + b"\n"

    def _tagged(self, data: bytes) -> bytes:
        if not data:
            return data
        before, self._is_at_start = self._is_at_start, data.endswith(b"\n")
        if not self._tag:
            return data
        body = data[:-1] if self._is_at_start else data
        lines = body.replace(b"\n", b"\n" + self._tag)
        return (self._tag if before else b"") + lines + (b"\n" if self._is_at_start else b"")


class JsonLines(OutputLines):
    """Each line as an object, together with the fields in `known`."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__(is_whole=True)
        self._known = known

    def feed(self, data: bytes) -> bytes:
        return self._encode(super().feed(data))

    def close(self) -> bytes:
        return self._encode(super().close())

    def _encode(self, data: bytes) -> bytes:
        """Bytes that are not UTF-8 are written as escapes."""
        texts = [line.decode(errors="backslashreplace") for line in data.split(b"\n")[:-1]]
        lines = [json.dumps({**self._known, "text": text}) for text in texts]
        return "".join(f"{line}\n" for line in lines).encode()
