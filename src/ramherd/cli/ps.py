"""`ramherd ps`: agents, MCP servers and their tools, with their memory and their owners."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ramherd.cli.main import INTERRUPTED, print_warnings
from ramherd.cli.store_reader import open_to_read
from ramherd.config.keys import STRAY_KEYS, Report, refuse
from ramherd.config.load import Config, add_flags, load_config
from ramherd.config.paths import runtime_dir, runtime_path, state_dir
from ramherd.core.errors import RamherdError, StoreError, UsageError
from ramherd.store.connect import open_store
from ramherd.store.protocol import Store
from ramherd.strays.judge.software import SoftwareTable, parse_software
from ramherd.strays.judge.warnings import find_savings
from ramherd.strays.render import (
    render_growth,
    render_ps,
    render_signs,
    render_warning,
    row_json,
)
from ramherd.strays.scan import Scan, Scanner, make_policy
from ramherd.system.procfs import has_procfs

EPILOG = """\
examples:
  ramherd ps                what agents, MCP servers and tools use
  ramherd ps --tree         children below their parents
  ramherd ps --watch        again every two seconds, until Ctrl-C

verdicts:
  live      in use: a terminal, a client, or a parent that uses it
  idle      in use, but has not used the CPU for half an hour
  suspect   looks abandoned, without proof: ramherd reap --suspect PID --yes
  orphan    proved to be abandoned: ramherd reap --yes

Memory is the proportional share (PSS); * marks processes of which only the
private memory could be read.
"""
WATCH_S = 2.0
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
    config = load_stray_config(options, report=warn_of_setting)
    with opened_scanner(config) as scanner:
        scan_once(options, scanner)
        try:
            while options.watch:
                time.sleep(WATCH_S)
                scan_once(options, scanner)
        except KeyboardInterrupt:  # the usual end, not worth a line
            return INTERRUPTED
    return 0


def scan_once(options: argparse.Namespace, scanner: Scanner) -> None:
    scan = scanner.scan_closely()
    show(options, scan, scanner)
    record(scanner, scan)


def warn_of_setting(error: UsageError) -> None:
    """The list of processes can be shown without the setting."""
    hint = f" ({error.hint})" if error.hint else ""
    print(f"ramherd: {error}: ignored{hint}", file=sys.stderr)


def load_stray_config(options: argparse.Namespace, report: Report = refuse) -> Config:
    if not has_procfs():
        raise RamherdError("ps and reap need /proc: they work on Linux only")
    flags = {key.name: getattr(options, key.name) for key in STRAY_KEYS}
    config = load_config(argparse.Namespace(**flags), report=report)
    print_warnings(config.warnings)
    return config


@contextmanager
def opened_scanner(config: Config) -> Iterator[Scanner]:
    software = SoftwareTable(parse_software(config.software))
    store = try_open_store()
    try:
        yield Scanner(make_policy(config), software, find_runtime(), store)
    finally:
        if store is not None:
            store.close()


def find_runtime() -> Path:
    """The directory in which scans are recorded, made if possible. A scan works without it."""
    try:
        return runtime_dir()
    except StoreError:
        return runtime_path()


def try_open_store() -> Store | None:
    try:
        return open_store(state_dir())
    except StoreError:
        pass
    try:
        return open_to_read()
    except StoreError as error:
        print(f"ramherd: {error}; earlier scans are unknown", file=sys.stderr)
        return None


def record(scanner: Scanner, scan: Scan, ended: Mapping[str, int] | None = None) -> None:
    """If the store cannot be written, only later scans lose data."""
    try:
        scanner.record(scan, ended)
    except (StoreError, OSError) as error:
        print(f"ramherd: cannot record this scan: {error}", file=sys.stderr)


def show(options: argparse.Namespace, scan: Scan, scanner: Scanner) -> None:
    warnings = scanner.find_warnings(scan)
    savings = find_savings(scan.rows, scan.scene)
    growth = scanner.find_growth(scan)
    if options.json:
        found = {
            "at_s": scan.scene.at_s,
            "processes": len(scan.scene.processes),
            "total_bytes": sum(row.memory_bytes for row in scan.rows),
            "rows": [row_json(row, scan.exact) for row in scan.rows],
            "warnings": [{**sign._asdict(), "text": render_warning(sign)} for sign in warnings],
            "savings": [saving._asdict() for saving in savings],
            "growth": [one._asdict() for one in growth],
        }
        print(json.dumps(found), flush=True)
        return
    if options.watch and sys.stdout.isatty():
        print(CLEAR, end="")
    lines = [*render_ps(scan.rows, scan.exact, tree=options.tree)]
    lines += [*render_signs(warnings, savings), *render_growth(growth)]
    print("\n".join(lines), flush=True)
