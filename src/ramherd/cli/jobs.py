"""`ramherd jobs`: the jobs, their memory, and the causes of their waits."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from ramherd.cli.job_list import JobList, read_job_list
from ramherd.cli.main import INTERRUPTED, read_columns
from ramherd.show.job_table import render_counts, render_table, short_herd
from ramherd.show.redraw import Redraw
from ramherd.show.tty import is_drawable
from ramherd.show.wait_text import render_paused

WATCH_EVERY_S = 1.0

EPILOG = """\
examples:
  ramherd jobs              jobs of herds that have not ended
  ramherd jobs --all        jobs of all herds
  ramherd jobs --herd last  jobs of the newest herd
  ramherd jobs --watch      refresh every second, until Ctrl-C
  ramherd jobs --json       one JSON object for each job

NO is the number of a job: commands take it instead of the name. MEMORY is what
a run uses, and what it may use now. TIME is the time of the newest run, or
the time in the queue.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--herd", metavar="ID", help="jobs of this herd (all that have not ended)")
    parser.add_argument("--all", action="store_true", help="also jobs of herds that have ended")
    parser.add_argument("--json", action="store_true", help="one JSON object for each line")
    parser.add_argument("--watch", action="store_true", help="refresh every second, until Ctrl-C")
    parser.set_defaults(verb=jobs)


def jobs(options: argparse.Namespace) -> int:
    if options.watch:
        try:
            watch(options)
        except KeyboardInterrupt:  # the usual end, not worth a line
            return INTERRUPTED
    found = read_job_list(options.herd, is_all=options.all)
    print_lines(render(found, options, read_columns()))
    return 0


def watch(options: argparse.Namespace) -> NoReturn:
    """Redraws in place on a terminal; in a pipe prints again when a job has changed."""
    if not options.json and is_drawable(sys.stdout):
        with Redraw(sys.stdout) as screen:
            while True:
                found = read_job_list(options.herd, is_all=options.all)
                screen.show(list(render(found, options, screen.columns)))
                time.sleep(WATCH_EVERY_S)
    before: Any = None
    while True:
        found = read_job_list(options.herd, is_all=options.all)
        now = signature(found)
        if now != before:
            print_lines(render(found, options, read_columns()))
        before = now
        time.sleep(WATCH_EVERY_S)


def signature(found: JobList) -> object:
    """The values whose change prints the list again: not times, nor memory."""
    states = [
        (job["id"], job["state"], job["attempts"], job["reason"].get("why")) for job in found.jobs
    ]
    return states, found.paused_s


def print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()


def render(found: JobList, options: argparse.Namespace, columns: int) -> Iterator[str]:
    if options.json:
        yield from map(json.dumps, found.jobs)
        return
    now_s = time.time()
    if found.paused_s is not None:
        ago = render_paused(found.paused_s, now_s)
        yield f"the service was {ago}: no job starts until `ramherd resume`"
    if not found.jobs:
        is_whole = options.all or options.herd is not None
        yield "no jobs" if is_whole else "no jobs are open (ramherd jobs --all lists all)"
        return
    yield from render_table(found.jobs, columns, now_s)
    herds = {job["herd"] for job in found.jobs}
    yield f"{render_counts(found.jobs)}; {render_herds(herds)}"


def render_herds(herds: set[str]) -> str:
    return f"herd {short_herd(*herds)}" if len(herds) == 1 else f"{len(herds)} herds"
