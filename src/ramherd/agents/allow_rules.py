"""Rules that allow an agent a tool in an unattended run: `Bash(npm test)`, `edit`.

A rule names a tool of the CLI, and the allowed use in brackets. `Bash` is the shell tool of every
CLI, even if the CLI has another name for it. Each adapter has the arguments of its CLI for rules.
"""

import re
from collections.abc import Sequence
from typing import Any

from ramherd.agents import find_agent
from ramherd.core.errors import UsageError
from ramherd.core.model import Brief
from ramherd.core.units import shown

# A tool of an MCP server may have dots, colons and slashes in its name.
RULE = re.compile(r"(?P<tool>[A-Za-z_][\w.:/*-]*)(?:\((?P<what>[^\n]+)\))?", re.ASCII)
# Names of the shell tool in the CLIs.
SHELLS = ("Bash", "bash", "run_shell_command", "ShellTool", "shell", "Shell")


def parse_rule(agent: str, rule: str) -> tuple[str, str]:
    """The tool, and its allowed use ("" for every use)."""
    found = RULE.fullmatch(rule.strip())
    if found is None:
        raise UsageError(
            f"--allow {shown(rule)} is not a rule of {agent}",
            hint="write the tool, and what of it in brackets: --allow 'Bash(npm test)'",
        )
    return found["tool"], found["what"] or ""


def render_rule(agent: str, rule: str, shell: str) -> str:
    """The rule with the CLI's own name of the shell tool."""
    tool, what = parse_rule(agent, rule)
    named = shell if tool in SHELLS else tool
    return f"{named}({what})" if what else named


def as_options(option: str, agent: str, rules: Sequence[str], shell: str) -> tuple[str, ...]:
    """One option for each rule: as `--option=value`, since these options take several values."""
    return tuple(f"{option}={render_rule(agent, rule, shell)}" for rule in rules)


def parse_rules(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(rule, str) for rule in value):
        raise UsageError("'allow' is not a list of rules")
    return value


def choose_rules(
    job: str, brief: Brief | None, session: str | None, rules: Sequence[str]
) -> tuple[str, ...]:
    """All rules for the next run of the job, which continues its session; else UsageError."""
    if brief is None:
        raise UsageError(f"job {job} is a command: it asks for no permission")
    if brief.skip_permissions:
        raise UsageError(f"job {job} may use every tool already: it has skip_permissions")
    find_agent(brief.agent).check_allow(rules)
    if not session:
        raise UsageError(f"job {job} has no session to continue: its agent did not open one")
    return tuple(dict.fromkeys([*brief.allow, *rules]))
