"""The value of a flag that is not a setting; an error names the flag."""

from collections.abc import Callable
from typing import Any

from ramherd.core.errors import UsageError


def parse_flag(flag: str, text: str | None, parse: Callable[[str], Any]) -> Any:
    """None if the flag is not given."""
    try:
        return None if text is None else parse(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error}", hint=error.hint) from None
