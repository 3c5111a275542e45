"""Checks the user's own arguments for an agent: some would undo settings of ramherd."""

import re
from collections.abc import Sequence

from ramherd.agents import Agent
from ramherd.core.errors import UsageError
from ramherd.core.units import shown

# The setting of ramherd to use instead of an option.
INSTEAD = {
    "--model": "model",
    "-m": "model",
    "--worktree": "worktree",
    "-w": "worktree",
    "--max-budget-usd": "max_cost_usd",
}


def check_args(agent: Agent, args: Sequence[str]) -> None:
    """A word that is not an option would become a prompt, or part of one."""
    if args and not args[0].startswith("-"):
        raise UsageError(f"agent_args: {shown(args[0])} is not an option of {agent.name}")
    for word in args:
        name = name_of(word)
        if name in (*agent.ours, "--"):
            use = f"use {INSTEAD[name]}" if name in INSTEAD else "leave it out"
            raise UsageError(f"agent_args: {name} of {agent.name} is set by ramherd", hint=use)


def name_of(word: str) -> str:
    """`--output-format` of `--outputFormat=text` (Node CLIs take both), `-m` of `-mopus`."""
    if not word.startswith("--"):
        return word[:2]
    return re.sub("[A-Z]", lambda found: f"-{found[0].lower()}", word.partition("=")[0])
