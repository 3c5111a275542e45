"""Findings as text, the worst last, just above the prompt."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ramherd.doctor.findings import Finding, Severity
from ramherd.show.event_lines import printable

WIDTH = 100
LEVELS = tuple(Severity)
INDENT = " " * 10


def render_findings(findings: Sequence[Finding]) -> Iterator[str]:
    for level in LEVELS:
        for finding in findings:
            if finding.level is level:
                yield from render_finding(finding)
    yield render_count(findings)


def render_finding(finding: Finding) -> Iterator[str]:
    yield from wrap(f"{finding.level:<9} {finding.check}: {finding.what}", "")
    if finding.why:
        yield from wrap(finding.why, INDENT)
    if finding.command:
        yield printable(f"{INDENT}> {finding.command}")


def wrap(text: str, first: str) -> list[str]:
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=first, subsequent_indent=INDENT,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def render_count(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.level for finding in findings)
    line = ", ".join(f"{counts[level]} {level}" for level in reversed(LEVELS))
    fixes = sum(finding.fix is not None for finding in findings)
    return line + (f"; --fix can do {fixes} of it" if fixes else "")


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
