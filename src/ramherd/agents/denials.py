"""A tool call that was refused, and the rule that would have allowed it."""

from collections.abc import Mapping
from typing import Any

from ramherd.agents.json_lines import WORD_LENGTH, text
from ramherd.agents.progress import Denied
from ramherd.agents.tool_text import main_argument

COMMANDS = ("command", "cmd")
# A longer command is allowed by its program: nobody types it again.
RULE_LENGTH = 120


def describe_call(args: Mapping[str, Any]) -> str:
    """The command, file or address that a tool was called with, in one line."""
    return " ".join(main_argument(args).split())[:WORD_LENGTH]


def deny_call(tool: str, args: Mapping[str, Any], rest: str = "") -> Denied:
    """By the rules of most CLIs: of a shell one command is allowed, of other tools all calls.
    `rest` is the CLI's way to write "and any arguments".
    """
    command = next((value for name in COMMANDS if (value := text(args, name).strip())), "")
    rule = f"{tool}({choose_rule(command, rest)})" if command else tool
    return Denied(tool, describe_call(args), rule)


def choose_rule(command: str, rest: str) -> str:
    """A command as it is, or all of its program where it is long or has several lines. CLIs without
    a `rest` take rules for beginnings of commands, and split them at commas.
    """
    is_plain = "\n" not in command and (rest != "" or "," not in command)
    if len(command) <= RULE_LENGTH and is_plain:
        return command
    return command.split(maxsplit=1)[0][:RULE_LENGTH] + rest
