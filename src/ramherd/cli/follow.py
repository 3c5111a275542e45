"""Following a herd of the service on this terminal, as if it ran here."""

import json
import sys
from typing import Any

from ramherd.client import Client, EventInfo
from ramherd.launch import FAILED, INTERRUPTED, OK
from ramherd.model import Event, Reason, Why
from ramherd.show.lines import LineShow, printable
from ramherd.show.summary import render_failures


def follow(client: Client, herd: str, *, as_json: bool) -> int:
    """Its events as lines, then what it came to. Ctrl-C cancels it, as it does a herd here."""
    show = LineShow(sys.stderr if as_json else sys.stdout)
    names = {job["id"]: job["name"] for job in client.jobs(herd)}
    interrupted = False
    try:
        for event in client.events(herd=herd):
            show.event(as_event(event), names.get(event["job"], "the herd"))
            if event["kind"] == "herd_ended":
                break
    except KeyboardInterrupt:
        interrupted = True
        client.cancel_herd(herd)
        client.wait(herd)
    summary = client.summary(herd)
    if as_json:
        print(json.dumps(summary), flush=True)
    else:
        for line in render(summary):
            show.print(line)
    show.close()
    return INTERRUPTED if interrupted else OK if summary["done"] == summary["jobs"] else FAILED


def as_event(event: EventInfo) -> Event:
    numbers = dict(event["reason"])
    reason = Reason(Why(numbers.pop("why")), **numbers)
    return Event(event["kind"], reason, event["at_s"], event["herd"], event["job"], event["run"])


def render(summary: dict[str, Any]) -> list[str]:
    rest = [f"{summary[state]} {state}" for state in ("failed", "cancelled") if summary[state]]
    ended = f" ({', '.join(rest)})" if rest else ""
    return [
        *render_failures(summary["results"]),
        printable(f"{summary['done']} of {summary['jobs']} jobs done{ended}, by the service"),
    ]
