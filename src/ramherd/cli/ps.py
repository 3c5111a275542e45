"""`ramherd ps`: agents, MCP servers and their tools, what they hold, and whose they are."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramherd.config.keys import STRAY_KEYS
from ramherd.config.load import Config, add_flags, load_config
from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.errors import RamherdError, StoreError
from ramherd.core.model import Event, Reason, Why
from ramherd.core.policies import StrayPolicy
from ramherd.store.sighting_rows import get_counts
from ramherd.store.sqlite import Store
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.judge.trend import Growth, find_growth
from ramherd.strays.judge.warnings import find_savings, find_warnings
from ramherd.strays.nouns import WarningSign
from ramherd.strays.render import render_ps, render_signs, render_warning, row_json
from ramherd.strays.scan import Look, look, note_counts, remember
from ramherd.strays.software_file import parse_software
from ramherd.system.procfs import read_meminfo

EPILOG = """\
verdicts:
  live      in use: a terminal, a client, a parent that wants it
  idle      the same, without using the CPU for half an hour
  suspect   looks left behind, but nothing proves it: ramherd reap --suspect PID --yes
  orphan    proved to be abandoned: ramherd reap --yes

Memory is the proportional share (PSS); * where only what is its own alone could be read.
"""
WATCH_S = 2.0
TREND_S = 6 * 3600.0
CLEAR = "\x1b[H\x1b[2J"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--tree", action="store_true", help="children below their parents")
    add("--json", action="store_true", help="one JSON object on stdout")
    add("--watch", action="store_true", help=f"again every {WATCH_S:.0f} seconds, until Ctrl-C")
    add_flags(parser, STRAY_KEYS)
    parser.set_defaults(verb=ps)


def ps(options: argparse.Namespace) -> int:
    with opened_herdsman(options) as herdsman:
        while True:
            seen = herdsman.look()
            show(options, seen, herdsman)
            herdsman.remember(seen)
            if not options.watch:
                return 0
            time.sleep(WATCH_S)


@dataclass
class Herdsman:
    """What looking needs: settings, the table of software, and what earlier looks left."""

    policy: StrayPolicy
    known: SoftwareTable
    runtime: Path
    store: Store | None
    config: Config

    def look(self) -> Look:
        return look(self.store, self.runtime, self.known, self.policy)

    def remember(self, seen: Look, ended: dict[str, int] | None = None) -> None:
        """A store that cannot be written to costs what is known of earlier, not the look."""
        if self.store is None:
            return
        try:
            remember(self.store, self.runtime, seen)
            note_counts(self.store, seen.rows, seen.scene.at_s, ended or {})
        except (StoreError, OSError) as error:
            print(f"ramherd: not remembered: {error}", file=sys.stderr)

    def find_growth(self, at_s: float) -> list[Growth]:
        return [] if self.store is None else find_growth(get_counts(self.store, at_s - TREND_S))

    def find_warnings(self, seen: Look) -> list[WarningSign]:
        total, available = read_meminfo()
        used_percent = 100 * (1 - available / total)
        return find_warnings(seen.rows, seen.scene, self.policy, used_percent)

    def note_warnings(self, warnings: list[WarningSign], at_s: float) -> None:
        for sign in warnings:
            self.note("warning", Reason(Why.WARNING_SIGN, what=render_warning(sign)), at_s)

    def note(self, kind: str, reason: Reason, at_s: float) -> None:
        if self.store is not None:
            self.store.add_event(Event(kind, reason, at_s, herd=""))
            self.store.commit()


@contextmanager
def opened_herdsman(options: argparse.Namespace) -> Iterator[Herdsman]:
    names = (key.name for key in STRAY_KEYS)
    if not os.path.isdir("/proc/self"):
        raise RamherdError("ps and reap read /proc, and there is none: Linux only, so far")
    config = load_config(argparse.Namespace(**{name: getattr(options, name) for name in names}))
    for warning in config.warnings:
        print(f"ramherd: {warning}", file=sys.stderr)
    known = SoftwareTable(parse_software(config.software))
    store = open_store()
    try:
        yield Herdsman(make_policy(config), known, runtime_dir(), store, config)
    finally:
        if store is not None:
            store.close()


def open_store() -> Store | None:
    try:
        return Store(state_dir() / "ramherd.db")
    except StoreError as error:
        print(f"ramherd: {error}; nothing is known of earlier", file=sys.stderr)
        return None


def make_policy(config: Config) -> StrayPolicy:
    return StrayPolicy(
        grace_s=config["stray_grace"],
        warn_at_bytes=config["warn_at"],
        warn_subagents=config["warn_subagents"],
        warn_mcp=config["warn_mcp"],
        warn_node=config["warn_node"],
        warn_memory_percent=config["warn_memory"],
    )


def show(options: argparse.Namespace, seen: Look, herdsman: Herdsman) -> None:
    warnings = herdsman.find_warnings(seen)
    savings = find_savings(seen.rows, seen.scene)
    growth = herdsman.find_growth(seen.scene.at_s)
    if options.json:
        found = as_json(seen) | {
            "warnings": [{**sign._asdict(), "text": render_warning(sign)} for sign in warnings],
            "savings": [saving._asdict() for saving in savings],
            "growth": [one._asdict() for one in growth],
        }
        print(json.dumps(found), flush=True)
        return
    if options.watch and sys.stdout.isatty():
        print(CLEAR, end="")
    lines = [*render_ps(seen.rows, seen.exact, tree=options.tree)]
    lines += [*render_signs(warnings, savings), *render_growth(growth)]
    print("\n".join(lines), flush=True)


def as_json(seen: Look) -> dict[str, Any]:
    return {
        "at_s": seen.scene.at_s,
        "processes": len(seen.scene.processes),
        "total_bytes": sum(row.memory_bytes for row in seen.rows),
        "rows": [row_json(row, seen.exact) for row in seen.rows],
    }


def render_growth(growth: list[Growth]) -> Iterator[str]:
    for one in growth:
        which = "agents and MCP servers" if one.what == "processes" else "strays"
        names = f", most of all {', '.join(one.software)}" if one.software else ""
        yield (
            f"warning: {which} grow by {one.per_hour:.0f} an hour, "
            f"{one.ended_per_hour:.0f} an hour are reaped{names}"
        )
