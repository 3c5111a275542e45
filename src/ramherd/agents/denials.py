"""A tool call that was refused, and the rule that would have allowed it."""

from collections.abc import Mapping
from typing import Any

from ramherd.agents.json_lines import WORD_LENGTH, text
from ramherd.agents.progress import Denied
from ramherd.agents.tool_text import main_argument

COMMANDS = ("command", "cmd")
# For a longer command, the rule allows its program: a user would not type the command again.
RULE_LENGTH = 120


def describe_call(args: Mapping[str, Any]) -> str:
    """The command, file or address of a tool call, in one line."""
    return " ".join(main_argument(args).split())[:WORD_LENGTH]


def deny_call(tool: str, args: Mapping[str, Any], rest: str = "") -> Denied:
    """Follows the rules of most CLIs: a rule for the shell allows one command, a rule for another
    tool all calls. `rest` is the CLI's syntax for "and any arguments".
    """
    command = next((value for name in COMMANDS if (value := text(args, name).strip())), "")
    rule = f"{tool}({choose_rule(command, rest)})" if command else tool
    return Denied(tool, describe_call(args), rule)


def choose_rule(command: str, rest: str) -> str:
    """The command itself, or all uses of its program if it is long or has several lines. CLIs
    without a `rest` match the beginnings of commands, and split rules at commas.
    """
    is_plain = "\n" not in command and (rest != "" or "," not in command)
    if len(command) <= RULE_LENGTH and is_plain:
        return command
    return command.split(maxsplit=1)[0][:RULE_LENGTH] + rest
