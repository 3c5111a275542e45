"""The subject of a tool call in one line, and its result in a few."""

import json
from collections.abc import Mapping
from typing import Any

from ramherd.agents.json_lines import tables, text

ARGUMENT_LENGTH = 400
# The main arguments of calls, in all CLIs; the first that is present is used.
TELLING = (
    "command", "cmd", "file_path", "filePath", "absolute_path", "path", "notebook_path",
    "dir_path", "pattern", "query", "url", "description", "prompt", "skill", "task_id",
)  # fmt: skip


def main_argument(arguments: Mapping[str, Any]) -> str:
    for name in TELLING:
        if found := as_text(arguments.get(name)):
            return found[:ARGUMENT_LENGTH]
    return json.dumps(dict(arguments))[:ARGUMENT_LENGTH] if arguments else ""


def as_text(value: Any) -> str:
    """A command is a text or a list of words."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value)
    return value if isinstance(value, str) else ""


def content_text(entry: Mapping[str, Any], name: str = "content") -> str:
    """The content of a message or of a tool's result: a text, or a list of parts."""
    parts = (text(part, "text") for part in tables(entry, name))
    return text(entry, name) or "\n".join(filter(None, parts))
