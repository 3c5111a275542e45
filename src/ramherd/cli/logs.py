"""`ramherd logs JOB`: what a job printed, while it runs or afterwards."""

import argparse
import sys
import time
from contextlib import closing
from pathlib import Path

from ramherd.cli.job_names import add_herd_option, find_job
from ramherd.cli.store_reader import open_to_read
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.errors import UsageError
from ramherd.core.model import JobState
from ramherd.core.units import format_size
from ramherd.measure.run_output import is_interactive, read_layout, read_output
from ramherd.store.herds import (
    has_directory,
    is_owned,
    read_job_state,
    read_newest_run,
)
from ramherd.store.protocol import Store

FOLLOW_EVERY_S = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("job", metavar="JOB", help="its name or id")
    add("-f", "--follow", action="store_true", help="go on until the job has ended")
    add_herd_option(parser)
    add("--err", action="store_true", help="standard error instead of standard output")
    parser.set_defaults(verb=logs)


def logs(options: argparse.Namespace) -> int:
    state = state_path()
    with closing(open_to_read()) as store:
        job = find_job(store, options.job, options.herd)
        refuse_without_log(store, state / "runs", job, options.job)
        Printer(store, state / "runs", job, "err" if options.err else "out").print(
            follow=options.follow
        )
    return 0


def refuse_without_log(store: Store, runs_dir: Path, job: str, name: str) -> None:
    run = read_newest_run(store, job)
    if run is not None and not has_directory(store, run):
        raise UsageError(
            f"what {name} printed was removed by `ramherd prune` or log_total",
            hint="ramherd config shows log_total",
        )
    if run is not None and is_interactive(runs_dir / run):
        raise UsageError(
            f"{name} was an interactive session: it keeps no log",
            hint="what it printed went to its terminal; ramherd run keeps what jobs print",
        )


class Printer:
    """Follows a job over its runs: a retried job goes on in another log."""

    def __init__(self, store: Store, runs_dir: Path, job: str, stream: str) -> None:
        self._store, self._runs_dir = store, runs_dir
        self._job, self._stream = job, stream
        self._run: str | None = None
        self._at = 0
        self._said_lost = False

    def print(self, *, follow: bool) -> None:
        while True:
            state = read_job_state(self._store, self._job)
            is_final = state is None or JobState(state).is_final
            over = is_final or not is_owned(self._store, self._job, runtime_path())
            self._print_new()
            if over or not follow:
                return
            time.sleep(FOLLOW_EVERY_S)

    def _print_new(self) -> None:
        run = read_newest_run(self._store, self._job)
        if run is None:
            return
        if run != self._run:
            self._run, self._at, self._said_lost = run, 0, False
        self._at = print_from(self._runs_dir / run, self._stream, self._at)
        self._print_lost(self._runs_dir / run)

    def _print_lost(self, run_dir: Path) -> None:
        lost = read_layout(run_dir, self._stream).lost
        if lost and not self._said_lost:
            self._said_lost = True
            sys.stdout.buffer.write(dropped_line(lost, "not kept: the disk was full"))
            sys.stdout.buffer.flush()


def print_from(run_dir: Path, stream: str, start: int) -> int:
    """Everything from byte `start` on, with a line where something is missing; the new end."""
    layout = read_layout(run_dir, stream)
    out = sys.stdout.buffer
    for piece in read_output(run_dir, stream, layout, start):
        out.write(dropped_line(piece, "dropped here") if isinstance(piece, int) else piece)
    out.flush()
    return layout.total


def dropped_line(size: int, what: str) -> bytes:
    return f"\n[ramherd: {format_size(size)} {what}]\n".encode()
