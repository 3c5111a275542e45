"""Findings as text: the worst first, then one line that counts them."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ramherd.core.units import count
from ramherd.doctor.findings import Finding, Severity
from ramherd.show.event_lines import printable

WIDEST = 100
LEVELS = tuple(Severity)
WORST_FIRST = tuple(reversed(LEVELS))
INDENT = " " * 10


def render_findings(
    findings: Sequence[Finding], columns: int, *, with_ok: bool = False
) -> Iterator[str]:
    width = min(columns, WIDEST)
    for level in WORST_FIRST if with_ok else WORST_FIRST[:-1]:
        for finding in findings:
            if finding.level is level:
                yield from render_finding(finding, width)
    yield render_verdict(findings, lists_ok=with_ok)


def render_finding(finding: Finding, width: int) -> Iterator[str]:
    yield from wrap(f"{finding.level:<9} {finding.check}: {finding.what}", "", width)
    if finding.why:
        yield from wrap(finding.why, INDENT, width)
    if finding.command:
        yield printable(f"{INDENT}> {finding.command}")


def wrap(text: str, first: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text), width, initial_indent=first, subsequent_indent=INDENT,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def render_verdict(findings: Sequence[Finding], *, lists_ok: bool = False) -> str:
    """`1 problem and 2 hints; 34 checks are ok (-v lists them); ramherd doctor --fix can fix 1`."""
    counts = Counter(finding.level for finding in findings)
    found = [count(counts[level], level) for level in WORST_FIRST[:-1] if counts[level]]
    fixes = sum(finding.fix is not None for finding in findings)
    parts = [
        join_words(found) or "nothing to do",
        f"{count(counts[Severity.OK], 'check is', 'checks are')} ok"
        + ("" if lists_ok or not counts[Severity.OK] else " (-v lists them)"),
        f"ramherd doctor --fix can fix {fixes}" if fixes else "",
    ]
    return "; ".join(filter(None, parts))


def join_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def findings_json(findings: Sequence[Finding]) -> dict[str, Any]:
    counts = Counter(finding.level for finding in findings)
    return {
        "counts": {level.value: counts[level] for level in LEVELS},
        "findings": [finding_json(finding) for finding in findings],
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    fix = finding.fix
    return {
        "check": finding.check,
        "level": finding.level.value,
        "what": finding.what,
        "why": finding.why,
        "command": finding.command,
        "fix": None if fix is None else {"step": fix.step, "undo": fix.undo},
        "numbers": dict(finding.numbers),
    }
