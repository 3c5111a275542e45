"""Rules that allow an agent a tool in a run that nobody watches: `Bash(npm test)`, `edit`.

A rule names a tool of the CLI, and what of it in brackets. `Bash` is the shell of every CLI,
whatever its own name for it is. Each adapter has the arguments that its CLI takes for rules.
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
# What people call the shell tool, by the CLI that they know.
SHELLS = ("Bash", "bash", "run_shell_command", "ShellTool", "shell", "Shell")


def parse_rule(agent: str, rule: str) -> tuple[str, str]:
    """The tool, and what of it is allowed ("" for all of it)."""
    found = RULE.fullmatch(rule.strip())
    if found is None:
        raise UsageError(
            f"--allow {shown(rule)} is not a rule of {agent}",
            hint="write the tool, and what of it in brackets: --allow 'Bash(npm test)'",
        )
    return found["tool"], found["what"] or ""


def render_rule(agent: str, rule: str, shell: str) -> str:
    """The rule with the name that this CLI has for its shell tool."""
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
    """All that the next run of the job is allowed, which goes on in its session. UsageError where
    that is not possible.
    """
    if brief is None:
        raise UsageError(f"job {job} is a command: it asks for no permission")
    if brief.skip_permissions:
        raise UsageError(f"job {job} may use every tool already: it has skip_permissions")
    find_agent(brief.agent).check_allow(rules)
    if not session:
        raise UsageError(f"job {job} has no session to continue: its agent did not open one")
    return tuple(dict.fromkeys([*brief.allow, *rules]))
