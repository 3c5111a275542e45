"""`ramherd reap`: ends what agents left behind; without --yes it only says what it would do."""

import argparse
import json
import os
import signal
import time
from collections import Counter
from typing import Any

from ramherd.cli.ps import Herdsman, opened_herdsman, render_growth
from ramherd.config.keys import STRAY_KEYS
from ramherd.config.load import add_flags
from ramherd.core.errors import UsageError
from ramherd.core.model import Reason, Why
from ramherd.strays.end import EndResult, close_processes, end_processes, open_processes
from ramherd.strays.judge.reap_plan import Plan, choose_named, choose_orphans
from ramherd.strays.nouns import PsRow, WarningSign
from ramherd.strays.render import (
    render_ended,
    render_facts,
    render_plan,
    render_refused,
    render_signs,
    render_warning,
    row_json,
)
from ramherd.strays.scan import Look

EPILOG = """\
examples:
  ramherd reap                              what would be ended, why, and what comes back
  ramherd reap --yes                        end orphans that have been so for 10 minutes
  ramherd reap --grace 0 --yes              end all proved orphans now
  ramherd reap --suspect 4711 --yes         end what you name, with all that it started
  ramherd reap --every 15m --install        on a timer; --uninstall takes it back

Only what is proved to be abandoned is ended: docs/strays.md says what is proof. Nothing with a
terminal, a live client or a live parent is, nor another user's, nor what cannot be looked at.
"""
# What is ended may start something in its last words: the last round leaves it none.
ROUNDS = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--yes", action="store_true", help="do it")
    add("--suspect", metavar="PID", type=int, nargs="+", default=[], help="end these instead")
    add("--all-users", action="store_true", help="other users' too (root only)")
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--every", metavar="TIME", help="how often, for --install")
    add("--install", action="store_true", help="reap on a timer")
    add("--uninstall", action="store_true", help="no more")
    add_flags(parser, STRAY_KEYS)
    add("--grace", metavar="TIME", dest="stray_grace", help="the same as --stray-grace")
    parser.set_defaults(verb=reap)


def reap(options: argparse.Namespace) -> int:
    if options.install or options.uninstall or options.every:
        from ramherd.cli.reap_timer import change_timer  # noqa: PLC0415 - seldom

        return change_timer(options)
    if options.all_users and os.getuid() != 0:
        raise UsageError("--all-users is for root", hint="sudo ramherd reap --all-users")
    with opened_herdsman(options) as herdsman:
        return Reaping(options, herdsman).run()


def as_texts(warnings: list[WarningSign]) -> list[str]:
    return [render_warning(sign) for sign in warnings]


class Reaping:
    def __init__(self, options: argparse.Namespace, herdsman: Herdsman) -> None:
        self.options, self.herdsman = options, herdsman
        self.ended: list[tuple[PsRow, EndResult]] = []

    def run(self) -> int:
        seen = self.herdsman.look()
        plan = first = self.plan(seen)
        for number in ROUNDS if self.options.yes else ():
            if not plan.ends:
                break
            self.end(plan, number)
            seen = self.herdsman.look()
            plan = self.plan(seen)
        warnings = self.herdsman.find_warnings(seen)
        done = (EndResult.ENDED, EndResult.KILLED)
        self.herdsman.remember(seen, Counter(r.software for r, how in self.ended if how in done))
        self.herdsman.note_warnings(warnings, seen.scene.at_s)
        self.tell(first, seen, warnings)
        failed = any(how not in done for _row, how in self.ended)
        return 1 if failed or first.refused else 0

    def plan(self, seen: Look) -> Plan:
        everybody = self.options.all_users
        if self.options.suspect:
            return choose_named(seen.rows, self.options.suspect, all_users=everybody)
        return choose_orphans(
            seen.rows, seen.scene.at_s, self.herdsman.policy.grace_s, all_users=everybody
        )

    def end(self, plan: Plan, number: int) -> None:
        """Held by pidfd first, then looked at again: what is signalled is what was judged."""
        opened = open_processes(row.process.id for row in plan.ends)
        try:
            again = {row.process.id: row for row in self.plan(self.herdsman.look()).ends}
            chosen = {proc: fd for proc, fd in opened.items() if proc in again}
            grace_s = self.herdsman.config["grace"]
            for proc, how in end_processes(chosen, grace_s, number).items():
                self.ended.append((again[proc], how))
                self.note(again[proc], how)
        finally:
            close_processes(opened)

    def note(self, row: PsRow, how: EndResult) -> None:
        """Every end is an event."""
        numbers: dict[str, Any] = {
            "software": row.software, "pid": row.process.pid, "memory_bytes": row.memory_bytes,
            "outcome": how.value,
        }  # fmt: skip
        if self.options.suspect:
            reason = Reason(Why.NAMED, **numbers)
        else:
            reason = Reason(Why.ABANDONED, **numbers, evidence=render_facts(row.evidence[:1]))
        self.herdsman.note("reaped", reason, time.time())

    def tell(self, plan: Plan, seen: Look, warnings: list[WarningSign]) -> None:
        growth = self.herdsman.find_growth(seen.scene.at_s)
        if self.options.json:
            print(json.dumps({**self.as_json(plan, seen), "warnings": as_texts(warnings)}))
            return
        named = bool(self.options.suspect)
        planned = render_plan(plan.ends, plan.later, named=named)
        lines = [*(render_ended(self.ended) if self.options.yes else planned)]
        lines += [*render_refused(plan.refused), *render_signs(warnings, ())]
        print("\n".join([*lines, *render_growth(growth)]))

    def as_json(self, plan: Plan, seen: Look) -> dict[str, Any]:
        done = [{**row_json(row, seen.exact), "outcome": how} for row, how in self.ended]
        return {
            "dry_run": not self.options.yes,
            "would_end": [row_json(row, seen.exact) for row in plan.ends],
            "freed_bytes": plan.freed_bytes,
            "ended": done,
            "later": [
                {**row_json(row, seen.exact), "left_s": round(left_s)} for row, left_s in plan.later
            ],
            "refused": [pid for pid, _row in plan.refused],
        }
