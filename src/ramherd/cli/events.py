"""`ramherd events`: the events of jobs, with their reasons, also long afterwards."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ramherd.cli.flag_values import parse_flag
from ramherd.cli.job_names import find_herd, find_job
from ramherd.cli.main import INTERRUPTED
from ramherd.cli.store_reader import open_to_read
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.model import JobState
from ramherd.core.units import parse_duration
from ramherd.show.event_lines import render_stored
from ramherd.store.connect import NAME
from ramherd.store.events import StoredEvent, read_event_range, read_events
from ramherd.store.herds import is_owned, read_job_state, read_lost_herds, read_newest_herd
from ramherd.store.listing import read_herd
from ramherd.store.protocol import Store

VERSION = 1
FOLLOW_EVERY_S = 0.2
# Events of the machine, such as processes that were reaped, belong to no herd.
NO_HERD = ""
MACHINE_S = 7 * 86400.0
DESCRIPTION = """\
What was decided in the newest herd and why: which jobs waited for what, were
held, granted more memory, stopped to make room, restarted or killed. Also the
processes that `ramherd reap` ended, and its warnings, of the last seven days."""
EPILOG = """\
examples:
  ramherd events                    the newest herd
  ramherd events --job fix-lint     one job
  ramherd events --since 10m        the last ten minutes, in all herds
  ramherd events -f                 follow all herds, until Ctrl-C
  ramherd events -f --herd last     follow the newest herd, until it has ended
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    add = parser.add_argument
    add("-f", "--follow", action="store_true", help="print new events too, as they happen")
    add("--job", metavar="JOB", help="events of this job, by its number or name")
    add("--herd", metavar="HERD", help="events of this herd (default: the newest)")
    add("--since", metavar="TIME", help="only events of the last 90s, 10m, 2h, in all herds")
    add("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(verb=events)


def events(options: argparse.Namespace) -> int:
    if not options.follow:
        return print_stored(options)
    try:
        if options.job is None and options.herd is None:
            await_store()
        return print_stored(options)
    except KeyboardInterrupt:  # the usual end, not worth a line
        return INTERRUPTED


def await_store() -> None:
    """The first herd creates the store."""
    while not (state_path() / NAME).exists():
        time.sleep(FOLLOW_EVERY_S)


def print_stored(options: argparse.Namespace) -> int:
    ago_s = parse_flag("--since", options.since, parse_duration)
    since_s = None if ago_s is None else time.time() - ago_s
    with closing(open_to_read()) as store:
        job = find_job(store, options.job, options.herd) if options.job is not None else None
        herd = choose_herd(store, options)
        _first, last = read_event_range(store)
        found = read_events(
            store, job=job, herd=herd, since_s=since_s, machine_since_s=machine_since(options)
        )
        print_events((event for event in found if event.seq <= last), options)
        if options.follow:
            follow(store, options, last, job, herd if options.herd is not None else None)
    return 0


def follow(
    store: Store, options: argparse.Namespace, last: int, job: str | None, herd: str | None
) -> None:
    """Until the named job or herd has ended; otherwise until Ctrl-C. A supervisor and the service
    write the same events, so only the store has to be read.
    """
    while True:
        is_last = is_over(store, job, herd)
        new = read_events(store, job=job, herd=herd, after_seq=last)
        last = max(last, print_events(new, options))
        if is_last:
            return
        time.sleep(FOLLOW_EVERY_S)


def is_over(store: Store, job: str | None, herd: str | None) -> bool:
    """Called before the last events are read, so that none is missed."""
    if job is not None:
        state = read_job_state(store, job)
        is_final = state is None or JobState(state).is_final
        return is_final or not is_owned(store, job, runtime_path())
    if herd is None:
        return False
    found = read_herd(store, herd)
    is_ended = found is None or found["ended_s"] is not None
    return is_ended or herd in read_lost_herds(store, runtime_path())


def print_events(found: Iterator[StoredEvent], options: argparse.Namespace) -> int:
    """Returns the number of the last event, 0 if there is none."""
    last = 0
    for event in found:
        print(json.dumps(as_json(event)) if options.json else render(event))
        last = event.seq
    sys.stdout.flush()
    return last


def machine_since(options: argparse.Namespace) -> float | None:
    """Events of the machine are of no herd or job that could be named."""
    is_named = options.job is not None or options.herd is not None
    return None if is_named else time.time() - MACHINE_S


def choose_herd(store: Store, options: argparse.Namespace) -> str | None:
    """None means all: a job is in one herd anyway, and a time is specific enough."""
    if options.job is not None:
        return None
    if options.herd is not None:
        return find_herd(store, options.herd)
    if options.since is not None:
        return None
    newest = read_newest_herd(store)
    if newest is None and (options.follow or any(read_events(store, herd=NO_HERD))):
        return NO_HERD if not options.follow else None
    return newest if newest is not None else find_herd(store)


def as_json(event: StoredEvent) -> dict[str, Any]:
    return {"v": VERSION, **event._asdict()}


def render(event: StoredEvent) -> str:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at_s))
    about = event.name or ("all runs" if event.herd else "this machine")
    return f"{at} {render_stored(event.kind, about, event.reason)}"
