"""What the dialects share."""

import json
import uuid
from collections.abc import Mapping
from typing import Any


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def halves(text: str) -> list[str]:
    """In two pieces, so that every stream has a middle."""
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]


def text_of(content: Any) -> str:
    """A text, or the texts of a list of parts; anything else as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] if isinstance(part, dict) and "text" in part else text_of(part)
            for part in content
        )
    return "" if content is None else json.dumps(content)


def sample(schema: Mapping[str, Any]) -> Any:
    """The plainest value that a JSON schema allows (types in either case: Gemini shouts)."""
    if "enum" in schema:
        return schema["enum"][0]
    match str(schema.get("type")).lower():
        case "object":
            return {name: sample(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "ok"
