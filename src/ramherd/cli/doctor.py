"""`ramherd doctor`: checks this machine, and suggests fixes."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from ramherd.cli.main import read_columns
from ramherd.config.load import load_config
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.policies import Policy
from ramherd.core.units import count
from ramherd.doctor.examine import HostFacts, examine
from ramherd.doctor.findings import Finding, Fix, Severity
from ramherd.doctor.fixes import apply, can_apply
from ramherd.doctor.read.host import Host
from ramherd.doctor.render import findings_json, render_findings, render_verdict
from ramherd.show.event_lines import printable

EPILOG = """\
examples:
  ramherd doctor                problems, why they matter, how to fix them
  ramherd doctor -v             and every check that found nothing
  ramherd doctor --json         the same for programs (docs/doctor.md)
  ramherd doctor --fix          ask before each step, and print how to undo it

Exit codes: 0 no problem, 1 a problem is left, 2 usage.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--json", action="store_true", help="one JSON object on stdout")
    add("-v", "--verbose", action="store_true", help="list the checks that are ok, too")
    add(
        "--fix", action="store_true", help="apply fixes that are safe and can be undone; asks first"
    )
    add("--yes", action="store_true", help="with --fix: do not ask")
    parser.set_defaults(verb=doctor)


def doctor(options: argparse.Namespace) -> int:
    refuse_wrong(options)
    found = examine_machine()
    fixed: list[Fix] = []
    if not options.json:
        print("\n".join(render_findings(found, read_columns(), with_ok=options.verbose)))
    if options.fix:
        fixed = fix_all(found, ask=not options.yes)
        found = examine_machine() if fixed else found
        if fixed and not options.json:
            print(f"after the fixes: {render_verdict(found)}")
    if options.json:
        steps = [{"step": fix.step, "undo": fix.undo} for fix in fixed]
        print(json.dumps({**findings_json(found), "fixed": steps}))
    return 1 if any(finding.level is Severity.PROBLEM for finding in found) else 0


def refuse_wrong(options: argparse.Namespace) -> None:
    if options.yes and not options.fix:
        raise UsageError("--yes needs --fix", hint="ramherd doctor --fix --yes")
    if options.fix and not options.yes and (options.json or not sys.stdin.isatty()):
        raise UsageError(
            "--fix asks before each step, and standard input is not a terminal", hint="add --yes"
        )


def examine_machine() -> list[Finding]:
    """Fixes that this user may not apply are left out."""
    return [
        replace(finding, fix=None) if finding.fix and not can_apply(finding.fix) else finding
        for finding in examine(HostFacts(Host(), logs_keep_bytes()))
    ]


def logs_keep_bytes() -> int:
    """`ramherd config` reports settings that do not parse; they do not stop this command."""
    try:
        return int(load_config(argparse.Namespace())["log_total"])
    except (RamherdError, OSError):
        return Policy().log_total_bytes


def fix_all(found: Sequence[Finding], *, ask: bool) -> list[Fix]:
    """On stderr: standard output may be JSON."""
    fixes = list(dict.fromkeys(finding.fix for finding in found if finding.fix is not None))
    copies: dict[str, str] = {}
    wanted = (fix for fix in fixes if not ask or agrees(fix))
    done = [made for fix in wanted if (made := fix_one(fix, copies)) is not None]
    print_line(
        f"{len(done)} of {count(len(fixes), 'step')} done" if fixes else "no step that --fix can do"
    )
    return done


def agrees(fix: Fix) -> bool:
    print_line(f"{fix.step}\n  undo: {fix.undo}\n  do it? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def fix_one(fix: Fix, copies: dict[str, str]) -> Fix | None:
    """The fix as it was applied."""
    try:
        done = apply(fix, copies)
    except RamherdError as error:
        print_line(f"not done: {error}" + (f"\n  hint: {error.hint}" if error.hint else ""))
        return None
    print_line(f"done: {done.step}\n  undo: {done.undo}")
    return done


def print_line(text: str, end: str = "\n") -> None:
    lines = "\n".join(printable(line) for line in text.split("\n"))
    print(lines, end=end, file=sys.stderr, flush=True)
