"""Findings as text, the worst last, just above the prompt."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ramherd.core.units import count
from ramherd.doctor.findings import Finding, Severity
from ramherd.show.event_lines import printable

WIDEST = 100
LEVELS = tuple(Severity)
INDENT = " " * 10


def render_findings(findings: Sequence[Finding], columns: int) -> Iterator[str]:
    width = min(columns, WIDEST)
    for level in LEVELS:
        for finding in findings:
            if finding.level is level:
                yield from render_finding(finding, width)
    yield render_count(findings)


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


def render_count(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.level for finding in findings)
    line = ", ".join(render_level(level, counts[level]) for level in reversed(LEVELS))
    fixes = sum(finding.fix is not None for finding in findings)
    return line + (f"; ramherd doctor --fix can fix {fixes} of them" if fixes else "")


def render_level(level: Severity, number: int) -> str:
    """`no problems`, `1 warning`, `29 ok`."""
    if level is Severity.OK:
        return f"{number} {level}"
    return count(number, level) if number else f"no {level}s"


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
