"""`ramherd logs [JOB ...]`: the output of jobs, while they run or afterwards.

Of agents, a transcript of messages and tool calls over all runs of the job; of commands, the bytes
of the newest run, unchanged.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ramherd.cli.job_log import JobLog, LoggedJob, RunStream, make_decoder
from ramherd.cli.job_names import Named, find_herd, find_job, find_job_or_herd
from ramherd.cli.main import print_error
from ramherd.cli.store_reader import open_to_read
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.errors import UsageError
from ramherd.core.model import JobState
from ramherd.measure.run_output import is_interactive
from ramherd.show.colors import Palette, is_colored
from ramherd.show.output_lines import JsonLines, OutputLines, make_tag
from ramherd.store.herds import has_directory, is_owned, read_job_state
from ramherd.store.listing import list_jobs, read_job, read_runs
from ramherd.store.protocol import Store

FOLLOW_EVERY_S = 0.2
PAGE = 1000
STREAMS = ("out", "err")
EPILOG = """\
examples:
  ramherd logs tests                 its output; for an agent, a transcript
  ramherd logs tests -f -n 20        the last 20 lines, then new ones
  ramherd logs tests --raw           an agent's stream as JSON lines
  ramherd logs tests --json          {"job": ..., "stream": ..., "text": ...}
  ramherd logs                       all jobs of the newest herd
  ramherd logs --herd ID lint tests  two jobs of an older herd

The standard error of a command goes to standard error; in a transcript its
lines are marked. With several jobs each line begins with the name of its job,
and a tab; on a terminal, with a column.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("jobs", metavar="JOB", nargs="*", help="numbers or names of jobs, or a herd (all jobs)")
    add("-f", "--follow", action="store_true", help="follow the output until the jobs have ended")
    add("-n", "--lines", metavar="N", type=int, help="the last N lines of each job")
    add("--herd", metavar="ID", help="the herd (the newest)")
    add("--raw", action="store_true", help="the stream of an agent as it was printed")
    add("--json", action="store_true", help="one JSON object for each line: job, stream, text")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--out", action="store_true", help="only standard output")
    only.add_argument("--err", action="store_true", help="only standard error")
    parser.set_defaults(verb=logs)


def logs(options: argparse.Namespace) -> int:
    if options.lines is not None and options.lines < 0:
        raise UsageError(f"-n takes 0 or more lines, not {options.lines}")
    with closing(open_to_read()) as store:
        jobs = find_jobs(store, options.jobs, options.herd)
        found = list(choose_printable(store, state_path() / "runs", jobs))
        printers = make_printers(store, found, options, is_tagged=len(jobs) > 1)
        print_jobs(printers, is_following=options.follow)
    return 0


def find_jobs(store: Store, names: list[str], herd: str | None) -> list[LoggedJob]:
    """Each job once, in the order of the names; without names, all jobs of the herd."""
    if not names:
        return list(read_herd_jobs(store, find_herd(store, herd)))
    found: dict[str, LoggedJob] = {}
    for name in names:
        one = Named(find_job(store, name, herd)) if herd is not None else None
        named = one or find_job_or_herd(store, name)
        if named.herd is not None:
            found |= {job.id: job for job in read_herd_jobs(store, named.herd)}
        elif named.job is not None:
            found[named.job] = read_logged(store, named.job)
    return list(found.values())


def read_herd_jobs(store: Store, herd: str) -> Iterator[LoggedJob]:
    after = ""
    while page := list_jobs(store, herd=herd, after=after, most=PAGE):
        yield from (read_logged(store, job["id"]) for job in page)
        after = page[-1]["id"]


def read_logged(store: Store, id_: str) -> LoggedJob:
    job: Mapping[str, Any] = read_job(store, id_) or {}
    name = str(job.get("name", id_))
    return LoggedJob(id_, name, job.get("agent") or "", job.get("prompt") or "")


def choose_printable(store: Store, runs_dir: Path, jobs: list[LoggedJob]) -> Iterator[LoggedJob]:
    """The jobs that have a log. A single job without one is an error, among several a line."""
    for job in jobs:
        problem = find_problem(store, runs_dir, job)
        if problem is None:
            yield job
        elif len(jobs) == 1:
            raise problem
        else:
            print(f"ramherd: {problem}", file=sys.stderr)


def find_problem(store: Store, runs_dir: Path, job: LoggedJob) -> UsageError | None:
    runs = [run["run"] for run in read_runs(store, job.id)]
    kept = [run for run in runs if has_directory(store, run)]
    if runs and (runs[-1] not in kept):
        return UsageError(
            f"the output of {job.name} was removed by `ramherd prune` or log_total",
            hint="ramherd config shows log_total",
        )
    if runs and is_interactive(runs_dir / runs[-1]):
        return UsageError(
            f"{job.name} was an interactive session: it keeps no log",
            hint="what it printed went to its terminal; ramherd run keeps what jobs print",
        )
    return None


def make_printers(
    store: Store, jobs: list[LoggedJob], options: argparse.Namespace, *, is_tagged: bool
) -> "Iterator[JobPrinter]":
    is_terminal = sys.stdout.isatty()
    widest = max((len(job.name) for job in jobs), default=0)
    # Standard error is printed to standard error, unless it is the only stream requested.
    out = sys.stdout.buffer
    is_together = options.err or options.json
    sinks: dict[str, BinaryIO] = {"out": out, "err": out if is_together else sys.stderr.buffer}
    for job in jobs:
        tag = make_tag(job.name, widest, is_terminal=is_terminal) if is_tagged else b""
        log = make_log(store, job, options)
        skipped = Counter[str]()
        if options.lines is not None:
            skipped = count_lines(make_log(store, job, options)) - Counter(
                dict.fromkeys(STREAMS, options.lines)
            )
        is_whole = is_tagged and options.follow
        lines = {
            stream: JsonLines({"job": job.name, "id": job.id, "stream": stream})
            if options.json
            else OutputLines(tag, is_whole=is_whole)
            for stream in STREAMS
        }
        is_silence_told = not (is_tagged or options.out or options.err)
        silence = f"{job.name} has printed nothing" if is_silence_told else ""
        yield JobPrinter(store, log, sinks, skipped, lines, silence=silence)


def make_log(store: Store, job: LoggedJob, options: argparse.Namespace) -> JobLog:
    chosen = ("out",) if options.out else ("err",) if options.err else STREAMS
    is_transcript = bool(job.agent) and not options.raw and not options.err
    palette = (
        Palette(is_colored=is_colored(sys.stdout) and not options.json) if is_transcript else None
    )

    def streams(run_dir: Path) -> list[RunStream]:
        return [RunStream(run_dir, name, make_decoder(job.agent, name, palette)) for name in chosen]

    return JobLog(store, state_path() / "runs", job, streams, palette)


def count_lines(log: JobLog) -> Counter[str]:
    """In bounded memory, whatever the number of lines: the log is read again to print it."""
    lines, last = Counter[str](), dict.fromkeys(STREAMS, b"\n")
    for stream, data in chain(log.read_new(), log.close()):
        lines[stream] += data.count(b"\n")
        last[stream] = data[-1:] or last[stream]
    return lines + Counter(stream for stream, end in last.items() if end != b"\n")


class JobPrinter:
    """Prints the output of one job, from the end of the last print."""

    def __init__(
        self, store: Store, log: JobLog, sinks: Mapping[str, BinaryIO], skipped: Mapping[str, int],
        lines: Mapping[str, OutputLines], *, silence: str = "",
    ) -> None:  # fmt: skip
        self._store, self._log, self._sinks = store, log, sinks
        self._skips = {stream: LineSkip(skipped.get(stream, 0)) for stream in STREAMS}
        self._lines = lines
        # What to report on standard error if there is no output.
        self._silence = silence

    def is_over(self) -> bool:
        """Called before the last read, so that no output is missed."""
        state = read_job_state(self._store, self._log.job.id)
        is_final = state is None or JobState(state).is_final
        return is_final or not is_owned(self._store, self._log.job.id, runtime_path())

    def print_new(self) -> None:
        self._print(self._log.read_new())

    def print_rest(self) -> None:
        self._print(self._log.close())
        for stream, lines in self._lines.items():
            self._sinks[stream].write(lines.close())
        self._flush()
        if self._silence:
            print_error(self._silence)

    def _print(self, pieces: Iterable[tuple[str, bytes]]) -> None:
        for stream, data in pieces:
            self._silence = "" if data else self._silence
            self._sinks[stream].write(self._lines[stream].feed(self._skips[stream].feed(data)))
        self._flush()

    def _flush(self) -> None:
        for sink in self._sinks.values():
            sink.flush()


class LineSkip:
    """Skips the first lines of a stream that arrives in pieces."""

    def __init__(self, lines: int) -> None:
        self._left = lines

    def feed(self, data: bytes) -> bytes:
        at = 0
        while self._left and at < len(data):
            end = data.find(b"\n", at)
            if end < 0:
                return b""
            self._left, at = self._left - 1, end + 1
        return data[at:]


def print_jobs(printers: Iterable[JobPrinter], *, is_following: bool) -> None:
    """One job after another; followed jobs take turns, line by line."""
    if not is_following:
        for printer in printers:
            printer.print_new()
            printer.print_rest()
        return
    live = list(printers)
    while live:
        live = [printer for printer in live if not print_turn(printer)]
        if live:
            time.sleep(FOLLOW_EVERY_S)


def print_turn(printer: JobPrinter) -> bool:
    """Returns whether the job is over."""
    is_over = printer.is_over()
    printer.print_new()
    if is_over:
        printer.print_rest()
    return is_over
