"""`ramherd prune`: removes what finished runs printed, and with `--older` their records too."""

import argparse
import json
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramherd.act.recovery import recover
from ramherd.config.load import load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import StoreError, UsageError
from ramherd.core.units import format_size, parse_duration, parse_size
from ramherd.decide.pruning import PruneRule
from ramherd.store.connect import open_store
from ramherd.store.inputs import remove_unused_inputs
from ramherd.supervisor.prune import Pruned, foresee, make_room, prune, prune_unknown

EPILOG = """\
examples:
  ramherd prune                             output of the oldest runs, down to log_total
  ramherd prune --older 7d                  and all about runs that ended more than a week ago
  ramherd prune --keep 1GiB --dry-run       what would go; --keep 0 is all output

`ramherd jobs` still lists jobs whose output is gone; --older removes them, except from a herd that
is still running.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--older", metavar="TIME", help="also the records of runs that ended longer ago")
    add("--keep", metavar="SIZE", help="the most output that may be left (log_total)")
    add("--dry-run", action="store_true", help="only say what would go")
    add("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(verb=prune_logs)


def prune_logs(options: argparse.Namespace) -> int:
    rule, state = make_rule(options, time.time()), state_dir()
    try:
        pruned = prune_state(state, rule, dry_run=options.dry_run)
    except StoreError:
        if options.dry_run or not make_room(state / "ramherd.db", state / "runs", rule):
            raise
        pruned = prune_state(state, rule, dry_run=False)
    if options.json:
        print(json.dumps({**asdict(pruned), "dry_run": options.dry_run}))
    else:
        print(render_pruned(pruned, dry_run=options.dry_run))
    return 1 if pruned.stuck else 0


def prune_state(state: Path, rule: PruneRule, *, dry_run: bool) -> Pruned:
    runs_dir = state / "runs"
    with closing(open_store(state)) as store:
        # Herds whose owner died are over as well; closing them is more than a dry run may do.
        if not dry_run:
            recover(store, runtime_dir(), runs_dir)
        pruned = (foresee if dry_run else prune)(store, runs_dir, rule)
        prune_unknown(store, runs_dir, time.time(), pruned, dry_run=dry_run)
        if not dry_run:
            remove_unused_inputs(store, state)
    return pruned


def make_rule(options: argparse.Namespace, now_s: float) -> PruneRule:
    older_s = parse_flag("--older", options.older, parse_duration)
    keep = parse_flag("--keep", options.keep, parse_keep)
    if keep is None:
        keep = load_config(argparse.Namespace())["log_total"]
    return PruneRule(keep, None if older_s is None else now_s - older_s)


def parse_keep(text: str) -> int:
    return 0 if text == "0" else parse_size(text)


def parse_flag(flag: str, text: str | None, parse: Any) -> Any:
    try:
        return None if text is None else parse(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error}", hint=error.hint) from None


def render_pruned(pruned: Pruned, *, dry_run: bool) -> str:
    did = "would remove" if dry_run else "removed"
    line = f"{did} the output of {'1 run' if pruned.runs == 1 else f'{pruned.runs} runs'}"
    if pruned.records:
        line += f", and the records of {pruned.records}"
    if pruned.unknown:
        line += f", and {pruned.unknown} directories of no known run"
    line += f": {format_size(pruned.freed_bytes)}; {format_size(pruned.left_bytes)} of logs left"
    if pruned.stuck:
        line += f"; {pruned.stuck} directories could not be removed"
    return line
