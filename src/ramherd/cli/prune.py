"""`ramherd prune`: removes the output of finished runs, and with `--older` their records too."""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from shlex import join, quote

from ramherd.act.recovery import recover
from ramherd.act.worktrees.ownerless import OwnerlessWorktree, find_ownerless, remove_ownerless
from ramherd.cli.flag_values import parse_flag
from ramherd.config.load import load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import StoreError, UsageError
from ramherd.core.units import format_size, parse_duration, parse_size
from ramherd.decide.pruning import PruneRule
from ramherd.show.event_lines import printable
from ramherd.store.connect import open_store
from ramherd.store.inputs import remove_unused_inputs
from ramherd.store.logs import has_job
from ramherd.supervisor.prune import Pruned, foresee, make_room, prune, prune_unknown

EPILOG = """\
examples:
  ramherd prune                             the oldest output, down to log_total
  ramherd prune --older 7d                  and records of runs older than a week
  ramherd prune --keep 1GiB --dry-run       a dry run; --keep 0 removes all output

`ramherd jobs` still lists jobs whose output is gone; --older removes them,
except from a herd that is still running, and except those that have a worktree
(ramherd merge, ramherd drop). A worktree whose job is gone is removed if
nothing was changed in it, and named otherwise.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--older", metavar="TIME", help="also records of runs that ended longer ago than this")
    add("--keep", metavar="SIZE", help="the most output that may be left (log_total)")
    add("--dry-run", action="store_true", help="only print what would be removed")
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
    removed, changed = prune_worktrees(state, dry_run=options.dry_run)
    if options.json:
        trees = {"worktrees_removed": len(removed), "worktrees": [asdict(one) for one in changed]}
        print(json.dumps({**asdict(pruned), **trees, "dry_run": options.dry_run}))
    else:
        print(render_pruned(pruned, dry_run=options.dry_run))
        for line in render_worktrees(removed, changed, dry_run=options.dry_run):
            print(line)
    return 1 if pruned.stuck else 0


def prune_state(state: Path, rule: PruneRule, *, dry_run: bool) -> Pruned:
    runs_dir = state / "runs"
    with closing(open_store(state)) as store:
        # Herds whose owner died are over as well, but a dry run must not close them.
        if not dry_run:
            recover(store, runtime_dir(), runs_dir)
        pruned = (foresee if dry_run else prune)(store, runs_dir, rule)
        prune_unknown(store, runs_dir, time.time(), pruned, dry_run=dry_run)
        if not dry_run:
            remove_unused_inputs(store, state)
    return pruned


def prune_worktrees(
    state: Path, *, dry_run: bool
) -> tuple[list[OwnerlessWorktree], list[OwnerlessWorktree]]:
    """Worktrees of no known job: the removed ones, and those with changes."""
    with closing(open_store(state)) as store:
        found = list(find_ownerless(state / "worktrees", lambda job: has_job(store, job)))
    removed = [one for one in found if not one.is_changed and (dry_run or remove_ownerless(one))]
    return removed, [one for one in found if one not in removed]


def render_worktrees(
    removed: Sequence[OwnerlessWorktree], changed: Sequence[OwnerlessWorktree], *, dry_run: bool
) -> Iterator[str]:
    if removed:
        did = "would remove" if dry_run else "removed"
        trees = "1 worktree" if len(removed) == 1 else f"{len(removed)} worktrees"
        yield f"{did} {trees} of no known job, without changes"
    for one in changed:
        what = f"its branch is {printable(one.branch)}" if one.branch else "its repository is gone"
        yield f"a worktree of no known job stays: {printable(one.path)}: {what}"
        if one.repository:
            remove = ["git", "-C", one.repository, "worktree", "remove", "--force", one.path]
            yield f"  hint: git -C {quote(one.path)} log --stat; {join(remove)}"


def make_rule(options: argparse.Namespace, now_s: float) -> PruneRule:
    older_s = parse_flag("--older", options.older, parse_age)
    keep = parse_flag("--keep", options.keep, parse_keep)
    if keep is None:
        keep = load_config(argparse.Namespace())["log_total"]
    return PruneRule(keep, None if older_s is None else now_s - older_s)


def parse_age(text: str) -> float:
    """A number without a unit is refused: records are removed, and most people mean days."""
    age_s, number = parse_duration(text), text.strip()
    if number[-1].isdigit():
        raise UsageError(
            f"duration {number!r} has no unit", hint=f"{number} seconds? say {number}d"
        )
    return age_s


def parse_keep(text: str) -> int:
    return 0 if text == "0" else parse_size(text)


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
    if pruned.kept_jobs:
        jobs = "1 job" if pruned.kept_jobs == 1 else f"{pruned.kept_jobs} jobs"
        line += f"\nkept the records of {jobs} with a worktree: ramherd merge, or ramherd drop"
    return line
