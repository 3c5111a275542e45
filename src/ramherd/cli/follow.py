"""Follows a herd of the service on this terminal, as if it ran here."""

import argparse
import json
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ramherd.cli.main import read_columns
from ramherd.cli.notify import notify
from ramherd.cli.run_display import RunDisplay, is_output_shown, read_commands
from ramherd.client.client import HERD_ENDS, Client
from ramherd.client.shapes import EventInfo, HerdInfo
from ramherd.core.errors import RamherdError
from ramherd.core.model import Event
from ramherd.core.reasons import reason_from_json
from ramherd.show.live_display import LiveShow
from ramherd.show.summary import render_herd
from ramherd.show.view import RunLine, View
from ramherd.show.wait_text import render_paused
from ramherd.supervisor.run_herd import FAILED, INTERRUPTED, OK

EVERY_S = 1.0


def follow(
    client: Client, herd: str, options: argparse.Namespace,
    *, after: int = 0, is_notified: bool = False,
) -> int:  # fmt: skip
    """Shows the progress and then the summary. Ctrl-C and TERM cancel the herd, as they do a herd
    that runs here; a closed window does not. Events up to `after` are left out.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    display: HerdDisplay | None = None
    interrupted, last = False, list[str]()
    try:
        try:
            display = open_display(client, herd, options, is_resumed=after > 0)
            show_events(client, herd, display, after)
        except KeyboardInterrupt:
            interrupted = True
            client.cancel_herd(herd, interrupt=True)
            client.wait(herd, after)
        summary = client.summary(herd)
        last = [] if options.json else render_last(summary, options, interrupted=interrupted)
    finally:
        close = RunDisplay(options, {}, jobs=0).close if display is None else display.close
        close(last)
    if options.json:
        print(json.dumps(summary), flush=True)
    if is_notified:
        notify(summary)
    return INTERRUPTED if interrupted else OK if summary["done"] == summary["jobs"] else FAILED


class Beginning(NamedTuple):
    """When the display's clock began, and how many jobs had ended then."""

    at_s: float
    ended: int


def open_display(
    client: Client, herd: str, options: argparse.Namespace, *, is_resumed: bool
) -> "HerdDisplay":
    names = {job["id"]: job["name"] for job in client.jobs(herd)}
    commands = read_commands(herd) if is_output_shown(options) else {}
    show = RunDisplay(options, commands, jobs=len(names))
    began = find_beginning(client.herd(herd), is_resumed=is_resumed)
    return HerdDisplay(client, herd, names, show, began)


def find_beginning(herd: HerdInfo, *, is_resumed: bool) -> Beginning:
    """The time in which a herd was interrupted does not count."""
    if not is_resumed:
        return Beginning(herd["created_s"], 0)
    ended = sum(herd["counts"].get(state, 0) for state in ("done", "failed", "cancelled"))
    return Beginning(time.time(), ended)


def show_events(client: Client, herd: str, display: "HerdDisplay", after: int) -> None:
    """Until the herd has ended. An earlier pause of the service is over, or was just reported."""
    began_s = report_pause(client, herd, display)
    for event in client.events(after, herd):
        if event["herd"] or event["at_s"] > began_s:
            display.event(event)
        if event["kind"] in HERD_ENDS:
            break


def report_pause(client: Client, herd: str, display: "HerdDisplay") -> float:
    """A paused service starts no job of the herd. Returns the time of the submission, or of the
    pause if that came later.
    """
    created_s, snapshot = client.herd(herd)["created_s"], client.snapshot()
    if not snapshot["paused"]:
        return created_s
    paused_s = snapshot["paused_s"] or 0.0
    ago = render_paused(paused_s, time.time())
    display.print(f"the service was {ago}: no job starts until `ramherd resume`")
    return max(created_s, paused_s)


def render_last(
    summary: dict[str, Any], options: argparse.Namespace, *, interrupted: bool
) -> list[str]:  # fmt: skip
    lines = render_herd(summary, read_columns(), is_verbose=options.verbose)
    if interrupted and summary["cancelled"]:
        lines.append(f"to continue: ramherd run --resume {summary['herd']}")
    return lines


class HerdDisplay:
    """Draws once a second in its own thread; the caller waits for events."""

    def __init__(
        self, client: Client, herd: str, names: dict[str, str], display: RunDisplay,
        began: Beginning,
    ) -> None:  # fmt: skip
        self._client, self._herd, self._names, self._began = client, herd, names, began
        self._show = display
        self._drawing = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        if isinstance(display.show, LiveShow):
            self._thread.start()

    def event(self, event: EventInfo) -> None:
        with self._drawing:
            self._show.event(as_event(event), self._names.get(event["job"], "the herd"))

    def print(self, line: str) -> None:
        with self._drawing:
            self._show.print(line)

    def close(self, last: Sequence[str]) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._show.close(last)

    def _draw(self) -> None:
        """A service that does not answer is asked again in the next round."""
        while not self._over.wait(EVERY_S):
            with suppress(RamherdError):
                self._draw_once()

    def _draw_once(self) -> None:
        herd, snapshot = self._client.herd(self._herd), self._client.snapshot()
        view = make_view(herd, snapshot, self._names, self._began)
        with self._drawing:
            self._show.update(lambda: view)


def as_event(event: EventInfo) -> Event:
    reason = reason_from_json(event["reason"])
    return Event(event["kind"], reason, event["at_s"], event["herd"], event["job"], event["run"])


def make_view(
    herd: HerdInfo, snapshot: dict[str, Any], names: dict[str, str], began: Beginning
) -> View:
    """The runs of the herd, and the memory of all runs."""
    counts, waits = herd["counts"], snapshot["waits_for"]
    return View(
        herd=herd["herd"],
        wall_s=time.time() - began.at_s,
        total=sum(counts.values()),
        done=counts.get("done", 0),
        failed=counts.get("failed", 0),
        cancelled=counts.get("cancelled", 0),
        runs=tuple(
            RunLine(
                run["name"], run["attempt"], run["used_bytes"], run["ran_s"], run["ending"],
                grant_bytes=run["grant_bytes"], held_s=run["held_s"], doing=run["doing"],
            )
            for run in snapshot["runs"]
            if run["job"] in names
        ),
        used_bytes=snapshot["used_bytes"],
        budget_bytes=snapshot["budget_bytes"],
        available_bytes=snapshot["available_bytes"],
        waits_for=None if waits is None else reason_from_json(waits),
        level=snapshot["level"],
        ended_before=began.ended,
    )  # fmt: skip
