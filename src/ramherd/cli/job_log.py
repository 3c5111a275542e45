"""The output of one job, run after run, as it is shown: the bytes of a command unchanged, the
events of an agent as a transcript.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.core.reasons import reason_from_json
from ramherd.core.units import format_size
from ramherd.measure.run_output import OutputCursor
from ramherd.show.colors import Palette
from ramherd.show.output_lines import OutputLines
from ramherd.show.reasons import render_reason
from ramherd.show.transcript_lines import (
    render_boundary,
    render_prompt,
    render_stderr,
)
from ramherd.store.herds import has_directory
from ramherd.store.listing import read_runs
from ramherd.store.protocol import Store


class LoggedJob(NamedTuple):
    id: str
    name: str
    # The agent CLI whose stream is shown as a transcript.
    agent: str
    prompt: str


class RawDecoder:
    """The bytes of one stream, unchanged. `skip` adds a line of ours where bytes are missing."""

    def feed(self, data: bytes) -> bytes:
        return data

    def skip(self, line: str) -> bytes:
        return f"\n{line}\n".encode()

    def close(self) -> bytes:
        return b""


class TranscriptDecoder:
    def __init__(self, agent: str, palette: Palette) -> None:
        from ramherd.agents.transcript import Transcript  # noqa: PLC0415 - commands need none

        self._transcript = Transcript(agent, palette)

    def feed(self, data: bytes) -> bytes:
        return as_bytes(self._transcript.feed(data))

    def skip(self, line: str) -> bytes:
        """Ends the event that was cut there."""
        return as_bytes([*self._transcript.feed(b"\n"), line])

    def close(self) -> bytes:
        return as_bytes(self._transcript.close())


class StderrDecoder:
    """The standard error of an agent, in its transcript: whole lines with a mark."""

    def __init__(self, palette: Palette) -> None:
        self._lines, self._palette = OutputLines(is_whole=True), palette

    def feed(self, data: bytes) -> bytes:
        return self._marked(self._lines.feed(data))

    def skip(self, line: str) -> bytes:
        return self._marked(self._lines.close()) + f"{line}\n".encode()

    def close(self) -> bytes:
        return self._marked(self._lines.close())

    def _marked(self, data: bytes) -> bytes:
        lines = data.decode(errors="replace").split("\n")[:-1]
        return as_bytes(render_stderr(line, self._palette) for line in lines)


Decoder = RawDecoder | TranscriptDecoder | StderrDecoder


def as_bytes(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(errors="replace")


class RunStream:
    """One stream of one run, from the end of the last read."""

    def __init__(self, run_dir: Path, stream: str, decoder: Decoder) -> None:
        self._cursor, self._decoder = OutputCursor(run_dir, stream), decoder
        self._has_reported_loss = False

    @property
    def name(self) -> str:
        return self._cursor.stream

    def read_new(self) -> Iterator[bytes]:
        for piece in self._cursor.read_new():
            if isinstance(piece, int):
                yield self._decoder.skip(dropped_line(piece, "dropped here"))
            else:
                yield self._decoder.feed(piece)
        if (lost := self._cursor.lost_bytes) and not self._has_reported_loss:
            self._has_reported_loss = True
            yield self._decoder.skip(dropped_line(lost, "not kept: the disk was full"))

    def close(self) -> bytes:
        return self._decoder.close()


def dropped_line(size: int, what: str) -> str:
    return f"[ramherd: {format_size(size)} {what}]"


class JobLog:
    """The output of one job, run after run: (stream, bytes) in the order in which they are shown.

    `read_new` returns the output since the last call.
    """

    def __init__(
        self, store: Store, runs_dir: Path, job: LoggedJob,
        streams: Callable[[Path], list[RunStream]], palette: Palette | None,
    ) -> None:  # fmt: skip
        self._store, self._runs_dir, self.job = store, runs_dir, job
        self._make_streams = streams
        # For a transcript, which spans all runs of its job.
        self._palette = palette
        self._run = ""
        self._streams: list[RunStream] = []

    def read_new(self) -> Iterator[tuple[str, bytes]]:
        runs = read_runs(self._store, self.job.id)
        at = next((at for at, run in enumerate(runs) if run["run"] == self._run), -1)
        yield from self._read_streams()
        for place in range(at + 1, len(runs)) if self._palette else range(len(runs))[-1:]:
            if runs[place]["run"] != self._run:
                yield from self.close()
                yield from self._open(runs, place)
                yield from self._read_streams()

    def close(self) -> Iterator[tuple[str, bytes]]:
        for stream in self._streams:
            yield self._sink_of(stream), stream.close()
        self._streams = []

    def _open(self, runs: list[dict[str, Any]], place: int) -> Iterator[tuple[str, bytes]]:
        self._run = runs[place]["run"]
        if self._palette is not None:
            yield "out", as_bytes(self._introduce(runs, place))
        self._streams = self._make_streams(self._runs_dir / self._run)

    def _introduce(self, runs: list[dict[str, Any]], place: int) -> Iterator[str]:
        """The prompt before the first run; before each later run, the end of the previous one."""
        assert self._palette is not None
        if place == 0:
            yield from render_prompt(self.job.prompt, self._palette)
        else:
            before, attempt = runs[place - 1], runs[place]["attempt"]
            reason = render_reason(reason_from_json(before["reason"])) if before["reason"] else ""
            ended = f"run {before['attempt']} ended: {reason or before['end'] or 'unknown'}"
            yield render_boundary(f"{ended}; run {attempt} goes on", self._palette)
        if not has_directory(self._store, self._run):
            gone = "what it printed was removed by `ramherd prune` or log_total"
            yield render_boundary(f"run {runs[place]['attempt']}: {gone}", self._palette)

    def _read_streams(self) -> Iterator[tuple[str, bytes]]:
        for stream in self._streams:
            for data in stream.read_new():
                yield self._sink_of(stream), data

    def _sink_of(self, stream: RunStream) -> str:
        """Both streams of a transcript form one text."""
        return stream.name if self._palette is None else "out"


def make_decoder(agent: str, stream: str, palette: Palette | None) -> Decoder:
    if palette is None:
        return RawDecoder()
    return TranscriptDecoder(agent, palette) if stream == "out" else StderrDecoder(palette)
