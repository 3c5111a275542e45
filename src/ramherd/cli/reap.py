"""`ramherd reap`: ends processes that agents left behind; without --yes it only lists them."""

import argparse
import json
import os
import time
from contextlib import closing
from typing import Any

from ramherd.cli.ps import load_stray_config, opened_scanner, record
from ramherd.cli.store_reader import open_to_read
from ramherd.config.keys import BY_NAME, STRAY_KEYS, parse_at
from ramherd.config.load import add_flags
from ramherd.core.errors import UsageError
from ramherd.store.events import read_events
from ramherd.strays.nouns import WarningSign
from ramherd.strays.reap import Reaped, Reaper
from ramherd.strays.render import (
    render_ended,
    render_growth,
    render_logged,
    render_plan,
    render_refused,
    render_signs,
    render_warning,
    row_json,
)
from ramherd.strays.scan import Scanner

EPILOG = """\
examples:
  ramherd reap                              what would be ended, and why
  ramherd reap --yes                        end processes orphaned for 10 minutes
  ramherd reap --stray-grace 0 --yes        end all proved orphans now
  ramherd reap --suspect 4711 --yes         end this process and all it started
  ramherd reap --log                        what was ended earlier, and why
  ramherd reap --every 15m --install        reap on a timer; --uninstall removes it

Only processes that are proved to be abandoned are ended: docs/strays.md
defines the proofs. A process with a terminal, a live client or a live parent
is never ended, nor one that is at work, nor one of another user. To keep
others: stray_keep in the settings, or RAMHERD_KEEP=1 in their environment.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--yes", action="store_true", help="end them")
    add(
        "--suspect",
        metavar="PID",
        type=int,
        nargs="+",
        default=[],
        help="end these processes instead",
    )
    add("--all-users", action="store_true", help="include processes of other users (root only)")
    add("--log", action="store_true", help="list the processes that were ended, and why")
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--every", metavar="TIME", help="how often, for --install")
    add("--install", action="store_true", help="reap on a timer")
    add("--uninstall", action="store_true", help="remove the timer")
    add_flags(parser, STRAY_KEYS)
    parser.set_defaults(verb=reap)


def reap(options: argparse.Namespace) -> int:
    if options.install or options.uninstall or options.every:
        return change_reap_timer(options)
    if options.log:
        return print_log(options)
    if options.all_users and os.getuid() != 0:
        raise UsageError("--all-users is for root", hint="sudo ramherd reap --all-users")
    config = load_stray_config(options)
    with opened_scanner(config) as scanner:
        reaper = Reaper(scanner, config["grace"], options.suspect, options.all_users)
        reaped = reaper.reap() if options.yes else reaper.plan()
        warnings = scanner.find_warnings(reaped.scan)
        at_s = reaped.scan.scene.at_s
        record(scanner, reaped.scan, reaped.ended_software)
        news = scanner.record_warnings(warnings, at_s)
        show(options, reaped, warnings if options.json else news, scanner)
        return 0 if reaped.succeeded else 1


def show(
    options: argparse.Namespace, reaped: Reaped, warnings: list[WarningSign], scanner: Scanner
) -> None:
    if options.json:
        texts = [render_warning(sign) for sign in warnings]
        print(json.dumps({**as_json(options, reaped), "warnings": texts}))
        return
    plan = reaped.plan
    if options.yes:
        lines = [*render_ended(reaped.ended)]
    else:
        lines = [*render_plan(plan.ends, plan.later, named=bool(options.suspect))]
    lines += [*render_refused(plan.refused), *render_signs(warnings, ())]
    lines += render_growth(scanner.find_growth(reaped.scan, reaped.ended_software))
    print("\n".join(lines))


def print_log(options: argparse.Namespace) -> int:
    with closing(open_to_read()) as store:
        found = [one for one in read_events(store, herd="") if one.kind == "reaped"]
    if options.json:
        print(json.dumps({"reaped": [{"at_s": one.at_s, **one.reason} for one in found]}))
        return 0
    for one in found:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at_s))
        print(f"{at} {render_logged(one.reason)}")
    if not found:
        print("nothing was ended")
    return 0


def as_json(options: argparse.Namespace, reaped: Reaped) -> dict[str, Any]:
    plan, exact = reaped.plan, reaped.scan.exact
    return {
        "dry_run": not options.yes,
        "would_end": [row_json(row, exact) for row in plan.ends],
        "freed_bytes": plan.freed_bytes,
        "ended": [{**row_json(row, exact), "outcome": how} for row, how in reaped.ended],
        "later": [{**row_json(row, exact), "left_s": round(left_s)} for row, left_s in plan.later],
        "refused": [pid for pid, _row in plan.refused],
    }


def change_reap_timer(options: argparse.Namespace) -> int:
    from ramherd.cli.timers import change_timer  # noqa: PLC0415 - seldom
    from ramherd.strays.timer import REAP  # noqa: PLC0415 - seldom

    if options.yes or options.suspect:
        raise UsageError("--yes and --suspect cannot be used with a timer", hint="leave them out")
    argv = ["reap", "--yes"]
    if options.stray_grace is not None:
        parse_at(BY_NAME["stray_grace"], options.stray_grace, "--stray-grace")
        argv += ["--stray-grace", options.stray_grace]
    if options.all_users:
        argv.append("--all-users")
    return change_timer(options, REAP, argv)
