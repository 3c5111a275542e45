"""Following a herd of the service on this terminal, as if it ran here."""

import json
import sys
from typing import Any

from ramherd.cli.watch import Watch
from ramherd.client.client import Client
from ramherd.show.event_lines import LineShow, printable
from ramherd.show.live_display import LiveShow
from ramherd.show.summary import render_failures
from ramherd.supervisor.run_herd import FAILED, INTERRUPTED, OK


def follow(client: Client, herd: str, *, as_json: bool) -> int:
    """What it does, then what it came to. Ctrl-C cancels it, as it does a herd here."""
    out = sys.stderr if as_json else sys.stdout
    show = LiveShow(out) if out.isatty() else LineShow(out)
    watch, interrupted = Watch(client, herd, show), False
    try:
        for event in client.events(herd=herd):
            watch.event(event)
            if event["kind"] == "herd_ended":
                break
    except KeyboardInterrupt:
        interrupted = True
        client.cancel_herd(herd)
        client.wait(herd)
    finally:
        watch.close()
    summary = client.summary(herd)
    if as_json:
        print(json.dumps(summary), flush=True)
    else:
        for line in render(summary):
            show.print(line)
    show.close()
    return INTERRUPTED if interrupted else OK if summary["done"] == summary["jobs"] else FAILED


def render(summary: dict[str, Any]) -> list[str]:
    rest = [f"{summary[state]} {state}" for state in ("failed", "cancelled") if summary[state]]
    ended = f" ({', '.join(rest)})" if rest else ""
    return [
        *render_failures(summary["results"]),
        printable(f"{summary['done']} of {summary['jobs']} jobs done{ended}, by the service"),
    ]
