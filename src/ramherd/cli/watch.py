"""`ramherd watch`: keeps a census of agents, MCP servers and tools, and alerts while they grow."""

import argparse
import json
import sys
import time

from ramherd.cli.main import INTERRUPTED
from ramherd.cli.ps import CLEAR, load_stray_config, opened_scanner
from ramherd.config.keys import BY_NAME, STRAY_KEYS
from ramherd.config.load import Config, add_flags
from ramherd.core.errors import StoreError, UsageError
from ramherd.strays.render_census import (
    census_json,
    render_alert,
    render_alerts,
    render_census,
)
from ramherd.strays.watch import Watcher, WatchScan, read_recorded, send_alerts

EPILOG = """\
examples:
  ramherd watch                         who uses memory, and who did in 7 days
  ramherd watch --every 30s             again every 30 seconds, until Ctrl-C
  ramherd watch --every 1m --install    on a timer; --uninstall removes it
  ramherd watch --all                   also the tools that have ended

The service (ramherd up) does this every minute by itself (watch_every). Each
look is recorded. It alerts once when a session that ramherd did not start
passes warn_at or leaks, when memory passes warn_memory, and when strays pile
up: as an event, by on_alert, and on the desktop: docs/watch.md.
"""
# A look takes 0.1 s of CPU.
LEAST_S = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--all", action="store_true", help="list every process that has ended, too")
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--quiet", action="store_true", help="print nothing: for timers")
    add("--every", metavar="TIME", help="look again after each TIME")
    add("--install", action="store_true", help="look on a timer, with --every")
    add("--uninstall", action="store_true", help="remove the timer")
    add_flags(parser, (*STRAY_KEYS, BY_NAME["on_alert"]))
    parser.set_defaults(verb=watch)


def watch(options: argparse.Namespace) -> int:
    if options.install or options.uninstall:
        return change_watch_timer(options)
    every_s = parse_repeat(options.every)
    config = load_stray_config(options)
    with opened_scanner(config) as scanner:
        watcher = Watcher(scanner)
        try:
            watch_once(options, watcher, config)
            while every_s is not None:
                time.sleep(every_s)
                watch_once(options, watcher, config)
        except KeyboardInterrupt:  # the usual end, not worth a line
            return INTERRUPTED
    return 0


def watch_once(options: argparse.Namespace, watcher: Watcher, config: Config) -> None:
    try:
        scan = watcher.scan()
    except StoreError as error:
        raise StoreError(f"cannot record the census: {error}", hint=error.hint) from None
    if not options.quiet:
        show(options, watcher, scan)
    send_alerts(scan.alerts, scan.total.at_s, options.on_alert or config["on_alert"])


def show(options: argparse.Namespace, watcher: Watcher, scan: WatchScan) -> None:
    census, signs = read_recorded(watcher.scanner.store, scan), [one.sign for one in scan.alerts]
    if options.json:
        alerts = [{**sign._asdict(), "text": render_alert(sign)} for sign in signs]
        found = {"at_s": scan.total.at_s, **census_json(census), "alerts": alerts}
        print(json.dumps(found), flush=True)
        return
    if options.every and sys.stdout.isatty():
        print(CLEAR, end="")
    lines = [*render_census(census, scan.total.at_s, ended=options.all), *render_alerts(signs)]
    print("\n".join(lines), flush=True)


def change_watch_timer(options: argparse.Namespace) -> int:
    from ramherd.cli.timers import change_timer  # noqa: PLC0415 - seldom
    from ramherd.strays.timer import WATCH  # noqa: PLC0415 - seldom

    if options.json or options.all:
        raise UsageError("--json and --all cannot be used with a timer", hint="leave them out")
    return change_timer(options, WATCH, ["watch", "--quiet"])


def parse_repeat(text: str | None) -> float | None:
    from ramherd.cli.timers import parse_every  # noqa: PLC0415 - seldom

    return None if text is None else parse_every(text, LEAST_S, "--every 30s")
