"""`ramherd jobs`: what there is, how it stands, and why."""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from ramherd.cli.store_reader import open_to_read
from ramherd.client.client import Client, is_running
from ramherd.config.paths import runtime_path
from ramherd.core.reasons import reason_from_json
from ramherd.show.cost_text import render_cost
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason
from ramherd.show.result_lines import state_of
from ramherd.store.herds import read_lost_herds
from ramherd.store.listing import list_herds, list_jobs

WATCH_EVERY_S = 1.0
PAGE = 1000


EPILOG = """\
examples:
  ramherd jobs              jobs of herds that have not ended
  ramherd jobs --all        jobs of all herds
  ramherd jobs --watch      the same again every second, until Ctrl-C
  ramherd jobs --json       one JSON object for each job
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--herd", metavar="ID", help="of this herd (all that have not ended)")
    parser.add_argument("--all", action="store_true", help="also of herds that have ended")
    parser.add_argument("--json", action="store_true", help="one JSON object for each line")
    parser.add_argument("--watch", action="store_true", help="again and again, until Ctrl-C")
    parser.set_defaults(verb=jobs)


def jobs(options: argparse.Namespace) -> int:
    while True:
        if options.watch and sys.stdout.isatty():
            print("\x1b[H\x1b[2J", end="")
        found = read_jobs(options)
        for line in map(json.dumps, found) if options.json else render(list(found)):
            print(line)
        sys.stdout.flush()
        if not options.watch:
            return 0
        time.sleep(WATCH_EVERY_S)


def read_jobs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Of the service; without one the store has them too."""
    if is_running():
        client = Client()
        herds = [dict(herd) for herd in client.herds(1000)]
        doing = {run["job"]: run["doing"] for run in client.snapshot()["runs"]}
        for herd in chosen(herds, options):
            for job in client.jobs(herd):
                yield {**job, "doing": doing.get(job["id"], "")}
        return
    with closing(open_to_read()) as store:
        lost = read_lost_herds(store, runtime_path())
        for herd in chosen(list_herds(store, most=1000), options):
            after = ""
            while page := list_jobs(store, herd=herd, after=after, most=PAGE, lost=lost):
                yield from page
                after = page[-1]["id"]


def chosen(herds: Iterable[dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """The oldest first."""
    if options.herd is not None:
        return [options.herd]
    return [herd["herd"] for herd in herds if options.all or herd["ended_s"] is None][::-1]


def render(found: list[dict[str, Any]]) -> Iterator[str]:
    widest = min(max((len(job["name"]) for job in found), default=0), 40)
    for job in found:
        why = render_reason(reason_from_json(job["reason"]))
        wish = f" ({job['wish']} wanted)" if job["wish"] else ""
        again = f" (run {job['attempts']})" if job["attempts"] > 1 else ""
        name, words = printable(job["name"]), f"{why}{again}{render_agent(job)}{wish}"
        yield printable(f"{job['id']}  {state_of(job):<9} {name:<{widest}}  {words}")
    counts = Counter(map(state_of, found))
    yield ", ".join(f"{number} {state}" for state, number in counts.items()) or "no jobs"


def render_agent(job: dict[str, Any]) -> str:
    """What it is doing, or how many turns it took; and what it has cost, where it says so."""
    turns = {None: "", 0: "", 1: "1 turn"}.get(job["turns"], f"{job['turns']} turns")
    words = [job.get("doing") or turns, render_cost(job)]
    words.append(f"{len(job['denied'])} denied" if job.get("denied") else "")
    text = ", ".join(filter(None, words))
    return f" ({text})" if text else ""
